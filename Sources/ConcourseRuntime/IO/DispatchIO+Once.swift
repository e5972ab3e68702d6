extension DispatchIO {
  /// Reads once: waits for the first byte, takes what is there, and calls the handler.
  ///
  /// The descriptor belongs to the operation until then. Matching C function: `dispatch_read`.
  /// - Parameters:
  ///   - fromFileDescriptor: the descriptor, read at its position.
  ///   - maxLength: the most to read; `Int.max` or a negative number for everything there is.
  ///   - queue: where the handler runs.
  ///   - handler: called once, with what was read and 0 or an errno. Empty data without an error means
  ///     the end of the file.
  public class func read(
    fromFileDescriptor: Int32, maxLength: Int, runningHandlerOn queue: DispatchQueue,
    handler: @escaping (_ data: DispatchData, _ error: Int32) -> Void
  ) {
    submitOnce(.read(maxLength, .once), to: fromFileDescriptor, queue) { handler($0 ?? .empty, $1) }
  }

  /// Writes once: waits as often as need be until all is written, and calls the handler.
  ///
  /// The descriptor belongs to the operation until then. Matching C function: `dispatch_write`.
  /// - Parameters:
  ///   - toFileDescriptor: the descriptor, written at its position.
  ///   - data: what to write.
  ///   - queue: where the handler runs.
  ///   - handler: called once: with nil and 0, or with what is unwritten and the errno.
  public class func write(
    toFileDescriptor: Int32, data: DispatchData, runningHandlerOn queue: DispatchQueue,
    handler: @escaping (_ data: DispatchData?, _ error: Int32) -> Void
  ) {
    submitOnce(.write(data, .once), to: toFileDescriptor, queue, handler)
  }

  private class func submitOnce(
    _ progress: OperationProgress, to descriptor: Int32, _ queue: DispatchQueue,
    _ handler: @escaping (DispatchData?, Int32) -> Void
  ) {
    Runtime.requireThreads("an operation on a descriptor")
    let channel = Channel(.stream, base: 0, queue, nil)
    let entry = DescriptorTable.attach(channel, to: descriptor)
    entry.submit(IOOperation(channel, entry, progress, offset: 0, .once(queue, handler)))
  }
}
