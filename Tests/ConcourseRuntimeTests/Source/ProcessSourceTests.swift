import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

typealias ProcessEvent = DispatchSource.ProcessEvent

extension Engine {
  @Suite("Process sources")
  struct ProcessSourceTests {
    /// How processes are observed: as usual, or with a refused call.
    enum Road: CaseIterable {
      case descriptor, notReapableAtOnce, withoutWaitByDescriptor, noSuchCall, noDescriptorsLeft, forbidden

      func prepare() {
        switch self {
        case .descriptor: break
        // Like a traced child before its tracer detaches: it has ended, and cannot be reaped.
        case .notReapableAtOnce: SystemScript.refuse(.processWait, with: 0, times: 3)
        case .withoutWaitByDescriptor: SystemScript.refuse(.processWait, with: EINVAL, times: 1)
        case .noSuchCall: SystemScript.refuse(.processOpen, with: ENOSYS)
        case .noDescriptorsLeft: SystemScript.refuse(.processOpen, with: EMFILE)
        case .forbidden: SystemScript.refuse(.processOpen, with: EPERM)
        }
      }
    }

    private func watch(_ identifier: pid_t, _ mask: ProcessEvent = .exit) throws -> WatchedSource {
      WatchedSource(try DispatchSource.makeProcess(identifier, mask, nil).get())
    }

    @Test(
      "S114 a child's exit is reported once, when it can be reaped, and it is not reaped",
      arguments: Road.allCases
    )
    func exitOfChild(road: Road) throws {
      defer { SystemScript.clear() }
      road.prepare()
      let child = Child("read line; exit 7")
      let watched = try watch(child.identifier)
      let code = Shared<Int32?>(nil)
      let reaped = DispatchSemaphore(value: 0)
      let source = watched.source
      // SAFETY: unowned, since the handler would keep the source, which lives to the end of this function.
      source.setEventHandler { [unowned source] in
        watched.reports.note(source.core.data)
        code.change { $0 = child.reapNow() }
        reaped.signal()
      }
      child.finish()
      #expect(comes(reaped))
      #expect(code.value == 7)
      watched.cancel()
      #expect(watched.reports.all == [ProcessEvent.exit.rawValue])
    }

    @Test("S114, trap 10: a child that waits to be reaped is reported at once", arguments: Road.allCases)
    func zombie(road: Road) throws {
      defer { SystemScript.clear() }
      road.prepare()
      let child = Child.zombie()
      let watched = try watch(child.identifier)
      #expect(watched.reports.comes(ProcessEvent.exit.rawValue))
      #expect(child.reapNow() == 3)
    }

    @Test("S114, trap 10: a process that has gone is reported at once", arguments: Road.allCases)
    func gone(road: Road) throws {
      defer { SystemScript.clear() }
      road.prepare()
      let child = Child("exit 0")
      child.reap()
      let watched = try watch(child.identifier)
      #expect(watched.reports.comes(ProcessEvent.exit.rawValue))
    }

    @Test(
      "S114, trap 10: a process that ends and is reaped between making and activating the source is reported")
    func endsBeforeActivation() throws {
      let child = Child("exit 0")
      let source = try DispatchSource.makeProcess(child.identifier, .exit, nil).get()
      child.reap()
      let watched = WatchedSource(source)
      #expect(watched.reports.comes(ProcessEvent.exit.rawValue))
    }

    @Test("S114 the exit of a process that is not a child is reported", arguments: Road.allCases)
    func stranger(road: Road) throws {
      defer { SystemScript.clear() }
      road.prepare()
      // A background job's standard input would be /dev/null.
      let shell = Child("exec 3<&0; cat <&3 & echo $!; wait; exec 3<&-; cat")
      let stranger = shell.readNumber()
      try #require(stranger > 0)
      let watched = try watch(stranger)
      shell.finish()
      #expect(watched.reports.comes(ProcessEvent.exit.rawValue))
    }

    @Test("S99 a cancelled process source is silent, and releases the process", arguments: Road.allCases)
    func cancelled(road: Road) throws {
      defer { SystemScript.clear() }
      road.prepare()
      let child = Child("read line")
      let watched = try watch(child.identifier)
      watched.cancel()
      child.finish()
      child.reap()
      watched.queue.sync {}
      #expect(watched.reports.all.isEmpty)
    }

    @Test(
      "S100 a process source cancelled before activation calls its cancel handler and closes its descriptor")
    func neverInstalled() throws {
      let child = Child("read line")
      weak var backend: ProcessBackend?
      do {
        let source = try DispatchSource.makeProcess(child.identifier, .exit, nil).get()
        backend = source.core.backend as? ProcessBackend
        #expect(backend != nil)
        let cancelled = DispatchSemaphore(value: 0)
        source.setCancelHandler { cancelled.signal() }
        source.cancel()
        source.activate()
        #expect(comes(cancelled))
      }
    }

    @Test("S103 handle, mask and data of a process source have their types")
    func members() throws {
      let child = Child("read line")
      let source = DispatchSource.makeProcessSource(identifier: child.identifier, eventMask: .exit)
      let handle: pid_t = source.handle
      let mask: ProcessEvent = source.mask
      #expect(handle == child.identifier)
      #expect(mask == .exit)
      let told = Shared<ProcessEvent>([])
      let came = DispatchSemaphore(value: 0)
      source.setEventHandler { [unowned source = source as! DispatchSource] in
        told.change { $0 = (source as any DispatchSourceProcess).data }
        came.signal()
      }
      source.activate()
      child.finish()
      #expect(comes(came))
      #expect(told.value == .exit)
      source.cancel()
      #expect((source.mask as ProcessEvent).isEmpty)
    }

    @Test(
      "S114 forks and execs of a process are reported, if the kernel announces them",
      .enabled(if: ProcessEvent.observable.contains(.fork)))
    func forkAndExec() throws {
      // The number comes after the shell's own exec, which does not count.
      let child = Child("echo 1; read line; /bin/true; read line; exec /bin/cat")
      #expect(child.readNumber() == 1)
      let watched = try watch(child.identifier, [.exit, .fork, .exec])
      watched.expects(ProcessEvent.fork) { child.tell("\n") }
      watched.expects(ProcessEvent.exec) { child.tell("\n") }
      watched.expects(ProcessEvent.exit) { child.finish() }
    }

    @Test(
      "S114 after lost announcements every source reports forks and execs",
      .enabled(if: ProcessEvent.observable.contains(.fork)))
    func lostAnnouncements() throws {
      defer { SystemScript.clear() }
      let child = Child("echo 1; read line; /bin/true; read line")
      #expect(child.readNumber() == 1)
      let watched = try watch(child.identifier, [.fork, .exec])
      watched.expects([ProcessEvent.fork, .exec]) {
        SystemScript.refuse(.read, with: ENOBUFS, times: 1)
        child.tell("\n")
      }
    }

    @Test("S95 process events that cannot be observed are refused, with the reason")
    func refusals() {
      func reason(_ identifier: pid_t, _ mask: ProcessEvent) -> String {
        switch DispatchSource.makeProcess(identifier, mask, nil) {
        case .success: "made"
        case .failure(let refusal): refusal.message
        }
      }
      #expect(reason(0, .exit).contains("must be positive"))
      #expect(reason(-4, .exit).contains("must be positive"))
      #expect(reason(1, []).contains("empty event mask"))
      #expect(reason(1, .init(rawValue: 0x8000_0001)).contains("0x1 mean nothing"))
      #expect(reason(1, [.exit, .signal]).contains("asks for .signal, which cannot be observed"))
      #expect(!ProcessEvent.observable.contains(.signal))
    }

    @Test(
      "S95, trap 6: forks and execs are refused if the kernel does not announce them",
      arguments: [
        (SystemCall.socket, EMFILE), (.bind, EPERM), (.write, ECONNREFUSED), (.read, EAGAIN),
      ])
    func connectorRefused(call: SystemCall, errno: Int32) throws {
      defer { SystemScript.clear() }
      SystemScript.refuse(call, with: errno)
      #expect(ProcessEvent.observable == .exit)
      guard case .failure(let refusal) = DispatchSource.makeProcess(1, [.exit, .fork], nil) else {
        Issue.record("a source was made")
        return
      }
      #expect(refusal.message.contains("asks for .fork, which cannot be observed here: the kernel refuses"))
    }
  }
}

@Suite("ProcessStatus")
struct ProcessStatusTests {
  @Test("The fields follow the last parenthesis, whatever the name")
  func names() {
    let fields = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21"
    let status = ProcessStatus(Array("12 (a) Z (b\n) \(fields)".utf8))
    #expect(status?.birth == 4711)
    #expect(status?.hasEnded == false)
    #expect(ProcessStatus(Array("12 (a) Z\(fields.dropFirst())".utf8))?.hasEnded == true)
    #expect(ProcessStatus(Array("12 (a) S 1".utf8)) == nil)
    #expect(ProcessStatus([]) == nil)
  }

  @Test("This process lives")
  func own() {
    #expect(ProcessStatus(of: getpid())?.hasEnded == false)
  }
}
