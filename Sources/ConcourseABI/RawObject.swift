internal import ConcourseRuntime
internal import Glibc
internal import Synchronization

/// An object that a program has had allocated, of a type of its own: the type's address, the numbers of internal and
/// of external references besides the first, and then whatever the program keeps there.
///
/// The type begins with two functions: what to do when the external references have gone, which is to give back the
/// internal reference that they held together, and what to do when the internal ones have, which is to free the
/// object. Without them, just that is done.
struct RawObject {
  private typealias Function = @convention(c) (UnsafeMutableRawPointer?) -> Void

  private struct Header {
    var type: UnsafeRawPointer
    var references: Int32
    var externalReferences: Int32
  }

  let reference: Reference

  /// nil for what was not made here.
  init?(_ reference: Reference?, _ function: StaticString) {
    guard let reference else { Reject.null(function, "object") }
    guard Register.contains(reference) else { return nil }
    self.reference = reference
  }

  static func make(_ type: UnsafeRawPointer?, _ size: Int) -> Reference {
    let size = max(size, MemoryLayout<Header>.size)
    guard let memory = calloc(1, size) else { ClientBug.outOfMemory("an object of \(size) bytes") }
    memory.storeBytes(of: type ?? Self.plainType, as: UnsafeRawPointer.self)
    Register.add(memory)
    return memory
  }

  func free() {
    Register.remove(reference)
    Glibc.free(reference)
  }

  // SAFETY: two words of zeros that are never written and never freed.
  private nonisolated(unsafe) static let plainType = UnsafeRawPointer(calloc(2, MemoryLayout<UInt>.size)!)

  // MARK: Counting

  // A count is that of the references besides the first, and this many for objects that are never freed.
  private static let uncounted = Int32.max

  private var references: UnsafeMutablePointer<Atomic<Int32>> { count(at: \.references) }
  private var externalReferences: UnsafeMutablePointer<Atomic<Int32>> { count(at: \.externalReferences) }

  private func count(at field: PartialKeyPath<Header>) -> UnsafeMutablePointer<Atomic<Int32>> {
    // SAFETY: the two numbers are only touched as atomics.
    (reference + MemoryLayout<Header>.offset(of: field)!).assumingMemoryBound(to: Atomic<Int32>.self)
  }

  private enum Change {
    case gone, stays
  }

  private func take(
    _ count: Int32, from number: UnsafeMutablePointer<Atomic<Int32>>, _ function: StaticString
  ) -> Change {
    // ORDERING: relaxed; a mark that does not change.
    if number.pointee.load(ordering: .relaxed) == Self.uncounted { return .stays }
    // ORDERING: acquiring and releasing; whoever takes the last one sees what all others did before.
    let left = number.pointee.wrappingSubtract(count, ordering: .acquiringAndReleasing).newValue
    if left < -1 { ClientBug.trap("\(function): the object was released more often than it was retained") }
    return left == -1 ? .gone : .stays
  }

  private func add(
    _ count: Int32, to number: UnsafeMutablePointer<Atomic<Int32>>, orResurrect: Bool = false,
    _ function: StaticString
  ) -> Change {
    // ORDERING: relaxed, both; the caller has a reference, so that nothing ends meanwhile.
    if number.pointee.load(ordering: .relaxed) == Self.uncounted { return .stays }
    let before = number.pointee.wrappingAdd(count, ordering: .relaxed).oldValue
    if before < (orResurrect ? -1 : 0) {
      ClientBug.trap("\(function): the object was retained after its last reference had been released")
    }
    return before < 0 ? .gone : .stays
  }

  func retain(_ function: StaticString) { _ = add(1, to: externalReferences, function) }

  func retainInternally(_ count: Int32, _ function: StaticString) { _ = add(count, to: references, function) }

  func retainOrResurrect(_ function: StaticString) {
    if case .gone = add(1, to: externalReferences, orResurrect: true, function) {
      retainInternally(1, function)
    }
  }

  func release(_ function: StaticString) {
    guard case .gone = take(1, from: externalReferences, function) else { return }
    if let end = typeFunction(0) { end(reference) } else { releaseInternally(1, function) }
  }

  func releaseInternally(_ count: Int32, _ function: StaticString) {
    guard case .gone = take(count, from: references, function) else { return }
    if let end = typeFunction(1) { end(reference) } else { free() }
  }

  private func typeFunction(_ index: Int) -> Function? {
    let type = reference.load(as: UnsafeRawPointer.self)
    // SAFETY: by the contract of `_os_object_alloc`, the type begins with two of them.
    return type.assumingMemoryBound(to: Function?.self)[index]
  }
}

/// Which objects were made here: of a reference alone it cannot be told.
private enum Register {
  /// So that most programs, which have none, need no lock.
  private static let isUsed = Atomic<Bool>(false)
  // SAFETY: addresses, not what lies there.
  private static let objects = Mutex<Set<UInt>>([])

  static func add(_ object: Reference) {
    // ORDERING: relaxed; whoever has got a reference to such an object sees this.
    isUsed.store(true, ordering: .relaxed)
    _ = objects.withLock { $0.insert(UInt(bitPattern: object)) }
  }

  static func remove(_ object: Reference) { _ = objects.withLock { $0.remove(UInt(bitPattern: object)) } }

  static func contains(_ object: Reference) -> Bool {
    // ORDERING: relaxed; as above.
    isUsed.load(ordering: .relaxed) && objects.withLock { $0.contains(UInt(bitPattern: object)) }
  }
}
