internal import ConcourseEvents
internal import Glibc
internal import Synchronization

/// An object that `_os_object_alloc` made for a type of the program's own. Its header holds the type's address and the
/// counts of internal and external references, each excluding the first; the program's fields follow.
///
/// The type begins with two functions. The first runs when the last external reference is released; without it, the
/// internal reference that the external ones share is released. The second runs when the last internal reference is
/// released; without it, the object is freed.
struct RawObject {
  private typealias Function = @convention(c) (UnsafeMutableRawPointer?) -> Void

  private struct Header {
    var type: UnsafeRawPointer
    var references: Int32
    var externalReferences: Int32
  }

  let reference: Reference

  /// nil if `_os_object_alloc` did not make the object.
  init?(_ reference: Reference?, _ function: StaticString) {
    guard let reference else { Reject.null(function, "object") }
    guard ObjectRegistry.contains(reference) else { return nil }
    self.reference = reference
  }

  static func make(_ type: UnsafeRawPointer?, _ size: Int) -> Reference {
    let size = max(size, MemoryLayout<Header>.size)
    guard let memory = calloc(1, size) else { ClientBug.outOfMemory("an object of \(size) bytes") }
    memory.storeBytes(of: type ?? Self.plainType, as: UnsafeRawPointer.self)
    ObjectRegistry.add(memory)
    return memory
  }

  func free() {
    ObjectRegistry.remove(reference)
    Glibc.free(reference)
  }

  // SAFETY: two words of zeros that are never written and never freed.
  private nonisolated(unsafe) static let plainType = UnsafeRawPointer(calloc(2, MemoryLayout<UInt>.size)!)

  // MARK: Counting

  // A count excludes the first reference. This value marks an object that is never freed.
  private static let uncounted = Int32.max

  private var references: UnsafeMutablePointer<Atomic<Int32>> { count(at: \.references) }
  private var externalReferences: UnsafeMutablePointer<Atomic<Int32>> { count(at: \.externalReferences) }

  private func count(at field: PartialKeyPath<Header>) -> UnsafeMutablePointer<Atomic<Int32>> {
    // SAFETY: the two counts are accessed only as atomics.
    (reference + MemoryLayout<Header>.offset(of: field)!).assumingMemoryBound(to: Atomic<Int32>.self)
  }

  private enum Change {
    case gone, stays
  }

  private func take(
    _ count: Int32, from number: UnsafeMutablePointer<Atomic<Int32>>, _ function: StaticString
  ) -> Change {
    // ORDERING: relaxed; the mark never changes.
    if number.pointee.load(ordering: .relaxed) == Self.uncounted { return .stays }
    // ORDERING: acquiring and releasing; pairs with itself. The thread that releases the last reference sees everything
    // that other threads did before they released theirs.
    let left = number.pointee.wrappingSubtract(count, ordering: .acquiringAndReleasing).newValue
    if left < -1 {
      ClientBug.trap(706, "\(function): the object was released more often than it was retained")
    }
    return left == -1 ? .gone : .stays
  }

  private func add(
    _ count: Int32, to number: UnsafeMutablePointer<Atomic<Int32>>, orResurrect: Bool = false,
    _ function: StaticString
  ) -> Change {
    // ORDERING: relaxed, both; the caller holds a reference, so the object cannot end meanwhile.
    if number.pointee.load(ordering: .relaxed) == Self.uncounted { return .stays }
    let before = number.pointee.wrappingAdd(count, ordering: .relaxed).oldValue
    if before < (orResurrect ? -1 : 0) {
      ClientBug.trap(707, "\(function): the object was retained after its last reference had been released")
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
    // SAFETY: by the contract of `_os_object_alloc`, the type begins with two functions.
    return type.assumingMemoryBound(to: Function?.self)[index]
  }
}

/// The objects that `_os_object_alloc` made. A reference alone does not reveal its origin.
private enum ObjectRegistry {
  /// False in most programs, which then skip the lock.
  private static let isUsed = Atomic<Bool>(false)
  private static let lock = Lock(.rawObjects)
  // GUARDED BY `lock`. SAFETY: so no two threads use it at once. Addresses only; they are never dereferenced.
  nonisolated(unsafe) private static var objects: Set<UInt> = []

  static func add(_ object: Reference) {
    // ORDERING: relaxed; other threads receive the object's reference after this store.
    isUsed.store(true, ordering: .relaxed)
    _ = lock.withLock { objects.insert(UInt(bitPattern: object)) }
  }

  static func remove(_ object: Reference) { _ = lock.withLock { objects.remove(UInt(bitPattern: object)) } }

  static func contains(_ object: Reference) -> Bool {
    // ORDERING: relaxed; as above.
    isUsed.load(ordering: .relaxed) && lock.withLock { objects.contains(UInt(bitPattern: object)) }
  }
}
