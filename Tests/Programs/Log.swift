// What a run of a program shows.

/// An event of a run. Events have one order: an item's begin and end are noted inside the item, calls around
/// the call. So what overlaps here has overlapped, and what is apart here may have overlapped a little.
struct Event: Sendable {
  enum What: Sendable {
    /// Before and after the call or calls of an operation; the value is a result, 1 for success.
    case call, back
    /// The item, or the scope, of an operation; the value is 1 + the queue whose specific value it sees, or
    /// 0.
    case begin, end
    /// After the cancellation of the work item of an operation, and after a wait for it.
    case cancelled, waited
    /// The notification of the work item of an operation.
    case noteBegin, noteEnd
    /// One iteration of a loop; the value is the index.
    case indexBegin, indexEnd
    /// A repeated item, by its number; the value as for `begin`.
    case itemBegin, itemEnd, itemCancelled
    /// The handlers of a source, by its number; the value is its data.
    case handlerBegin, handlerEnd, cancelHandler
    /// Before `activate` of a queue, by its number, and before `cancel` of a source at the end of the
    /// program.
    case activated, retired
    /// A deallocator of an operation's data.
    case freed
  }

  let what: What
  /// The number of an operation or of an object.
  let number: Int
  var value = 0
  var thread = 0
  /// Nanoseconds of the uptime clock.
  var time = 0
}

struct Log: Sendable {
  var events: [Event] = []
  /// What the steps of a data program showed.
  var results: [Int: [[UInt8]]] = [:]
}
