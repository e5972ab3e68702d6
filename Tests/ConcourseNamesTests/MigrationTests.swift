import FoundationEssentials
import Glibc
import Testing

/// C names that Swift programs must not use, and the compiler's advice.
@Suite("C's names", .timeLimit(.minutes(10)))
struct MigrationTests {
  /// The names that the toolchain's Dispatch and Apple's declare unavailable.
  private static let functions = """
    dispatch_queue_create dispatch_queue_create_with_target dispatch_io_create
    dispatch_io_create_with_path dispatch_io_create_with_io dispatch_read dispatch_data_create
    dispatch_data_get_size dispatch_data_create_map dispatch_data_create_concat
    dispatch_data_create_subrange dispatch_data_apply dispatch_data_copy_region dispatch_group_async
    dispatch_group_notify dispatch_group_wait dispatch_io_close dispatch_io_set_interval dispatch_apply
    dispatch_async dispatch_get_global_queue dispatch_get_main_queue
    dispatch_queue_attr_make_initially_inactive dispatch_queue_attr_make_with_autorelease_frequency
    dispatch_queue_attr_make_with_qos_class dispatch_queue_get_label dispatch_queue_get_qos_class
    dispatch_after dispatch_barrier_async dispatch_barrier_sync dispatch_queue_set_specific
    dispatch_queue_get_specific dispatch_get_specific dispatch_assert_queue dispatch_assert_queue_barrier
    dispatch_assert_queue_not dispatch_semaphore_wait dispatch_semaphore_signal dispatch_source_create
    dispatch_source_set_event_handler dispatch_source_set_cancel_handler dispatch_source_cancel
    dispatch_source_testcancel dispatch_source_get_handle dispatch_source_get_mask
    dispatch_source_get_data dispatch_source_merge_data dispatch_source_set_timer
    dispatch_source_set_registration_handler dispatch_time dispatch_walltime
    """.split(whereSeparator: \.isWhitespace).map(String.init)

  private static let constants = """
    DISPATCH_QUEUE_PRIORITY_HIGH DISPATCH_QUEUE_PRIORITY_DEFAULT DISPATCH_QUEUE_PRIORITY_LOW
    DISPATCH_QUEUE_PRIORITY_BACKGROUND DISPATCH_IO_STREAM DISPATCH_IO_RANDOM DISPATCH_IO_STOP
    DISPATCH_IO_STRICT_INTERVAL DISPATCH_MACH_SEND_DEAD DISPATCH_MEMORYPRESSURE_NORMAL
    DISPATCH_MEMORYPRESSURE_WARN DISPATCH_MEMORYPRESSURE_CRITICAL DISPATCH_PROC_EXIT DISPATCH_PROC_FORK
    DISPATCH_PROC_EXEC DISPATCH_PROC_SIGNAL DISPATCH_TIMER_STRICT DISPATCH_VNODE_DELETE
    DISPATCH_VNODE_WRITE DISPATCH_VNODE_EXTEND DISPATCH_VNODE_ATTRIB DISPATCH_VNODE_LINK
    DISPATCH_VNODE_RENAME DISPATCH_VNODE_REVOKE DISPATCH_VNODE_FUNLOCK DISPATCH_TIME_NOW
    DISPATCH_TIME_FOREVER
    """.split(whereSeparator: \.isWhitespace).map(String.init)

  /// Advice where the toolchain's Dispatch names a declaration that neither it nor Concourse has.
  private static let namedBetter = [
    "DISPATCH_MACH_SEND_DEAD": "is unavailable: There are no Mach ports on Linux",
    "dispatch_data_apply": "has been replaced by instance method 'DispatchData.enumerateBytes(_:)'",
    "dispatch_data_create": "has been replaced by 'DispatchData.init(bytesNoCopy:deallocator:)'",
    "dispatch_get_global_queue": "has been replaced by 'DispatchQueue.global(qos:)'",
    "dispatch_read":
      "has been replaced by 'DispatchIO.read(fromFileDescriptor:maxLength:runningHandlerOn:handler:)'",
    "dispatch_source_merge_data":
      "has been replaced by instance method 'DispatchSourceUserDataAdd.add(data:)'",
    "dispatch_source_set_timer":
      "has been replaced by instance method 'DispatchSourceTimer.schedule(deadline:repeating:leeway:)'",
    "dispatch_walltime": "has been replaced by 'DispatchWallTime.init(timespec:)'",
  ]

  @Test("functions and constants of C are unavailable, and the compiler says what replaces each")
  func unavailable() throws {
    let scratch = try Scratch()
    let names = Self.functions + Self.constants
    #expect(names.count == 78)
    let uses = names.enumerated().map { "func use\($0)() { _ = \($1) }\n" }.joined()
    let ours = try scratch.errors(in: "import Concourse\n" + uses)
    let theirs = try scratch.errors(in: "import Dispatch\n" + uses)
    #expect(ours.count == names.count && theirs.count == names.count)
    for (name, (our, their)) in zip(names, zip(ours, theirs)) {
      let expected = Self.namedBetter[name].map { "'\(name)' \($0)" }
      #expect(our == expected ?? their)
    }
  }

  @Test("the same with Foundation imported, with and without the plugin's file")
  func besideFoundation() throws {
    let scratch = try Scratch()
    let text = """
      import Concourse
      import Foundation
      func use(_ queue: Concourse::DispatchQueue) {
        dispatch_async(queue) {}
        _ = DISPATCH_TIME_NOW
      }
      """
    let expected = [
      "'dispatch_async' has been replaced by instance method 'DispatchQueue.async(execute:)'",
      "'DISPATCH_TIME_NOW' has been replaced by 'DispatchTime.now()'",
    ]
    #expect(try scratch.errors(in: text) == expected)
    #expect(try scratch.errors(in: text, withNames: true) == expected)
  }

  @Test("a file that imports C's functions beside Concourse can call them")
  func besideC() throws {
    let scratch = try Scratch()
    let text = """
      import CDispatch
      import Concourse
      func use() -> UInt64 {
        let queue = dispatch_get_global_queue(0, 0)
        dispatch_async_f(queue, nil) { _ in }
        dispatch_async(queue) {}
        let semaphore = dispatch_semaphore_create(1)
        dispatch_semaphore_wait(semaphore, dispatch_time(0, 5))
        return dispatch_walltime(nil, 0)
      }
      """
    #expect(try scratch.errors(in: text) == [])
  }
}
