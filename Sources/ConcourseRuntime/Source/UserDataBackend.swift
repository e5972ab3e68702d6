/// The part of a source that nothing outside feeds: only `add`, `or` and `replace` raise its events.
final class UserDataBackend: SourceBackend {
  func install(for source: SourceCore) {}
  func remove() {}
}
