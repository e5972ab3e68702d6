// Which queues an item holds, for the exploring library: with `concourse explore --races` it tells the thread sanitizer what
// they order (Sources/CExploring/races.c). The other libraries are linked without these functions, which they do not call.

/// The queue of a C reference: the main queue for its symbol.
@c(concourse_find_queue)
func findQueue(_ reference: UnsafeRawPointer) -> UnsafeRawPointer {
  // SAFETY: the program passes it to a function of Dispatch that takes a queue.
  let object = Unmanaged<DispatchQueue>.fromOpaque(reference)
  let isSymbol = object._withUnsafeGuaranteedRef { $0.kind == .mainQueueSymbol }
  return UnsafeRawPointer(
    isSymbol ? Unmanaged.passUnretained(DispatchQueue.main).toOpaque() : object.toOpaque())
}

/// Lists a queue and those above it, without global queues. The lowest bit of each address says whether the item runs alone
/// there. On a concurrent target queue it does not.
@c(concourse_list_hierarchy)
func listHierarchy(
  _ reference: UnsafeRawPointer, _ isAlone: Bool, _ queues: UnsafeMutablePointer<UInt>, _ most: Int32
) -> Int32 {
  var count = 0
  var isAlone = isAlone
  // SAFETY: as above. A queue keeps its target.
  var link: DispatchQueue? = Unmanaged<DispatchQueue>.fromOpaque(findQueue(reference)).takeUnretainedValue()
  while let queue = link, queue.kind != .global, count < Int(most) {
    let address = UInt(bitPattern: Unmanaged.passUnretained(queue).toOpaque())
    queues[count] = address | (isAlone || queue.kind.isSerial ? 1 : 0)
    count += 1
    isAlone = false
    link = queue.targetQueue
  }
  return Int32(count)
}

/// The queue of the item that the calling thread runs, whether the item runs alone there, and its group.
@c(concourse_find_running)
func findRunning(
  _ isAlone: UnsafeMutablePointer<Bool>, _ group: UnsafeMutablePointer<UnsafeRawPointer?>
) -> UnsafeRawPointer? {
  guard let frame = Frame.current else { return nil }
  isAlone.pointee = frame.pointee.exclusive
  group.pointee = UnsafeRawPointer(CurrentThread.state.pointee.group)
  return UnsafeRawPointer(frame.pointee.queue.toOpaque())
}
