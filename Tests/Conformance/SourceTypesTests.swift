// N. Which types `data`, `mask` and `handle` of a source have: by inference, by context, by cast. What fails here fails
// to compile.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("N. Types of source values")
  struct SourceTypesTests {
    @Test("the values of sources without event masks are UInt, also of the class")
    func plain() {
      let timer = DispatchSource.makeTimerSource()
      let read = DispatchSource.makeReadSource(fileDescriptor: 0)
      let ticks = timer.data
      let descriptor = read.handle
      let mask = (read as any DispatchSourceProtocol).mask
      #expect(type(of: ticks) == UInt.self && type(of: mask) == UInt.self)
      #expect(type(of: descriptor) == UInt.self && descriptor == 0)
      let object = timer as! DispatchSource
      let (data, handle) = (object.data, object.handle)
      #expect(type(of: data) == UInt.self && type(of: handle) == UInt.self)
      #expect((read as! DispatchSource).handle == 0)
      let sums = (sum(timer), inheritedSum(read))
      #expect(sums == (0, 0))
      for source in [timer, read] as [any DispatchSourceProtocol] {
        source.activate()
        #expect(retire(source))
      }
    }

    private func sum(_ source: some DispatchSourceTimer) -> UInt {
      let (data, mask, handle) = (source.data, source.mask, source.handle)
      return data + mask + handle
    }

    private func inheritedSum<Source: DispatchSourceProtocol>(_ source: Source) -> UInt {
      let (data, mask, handle) = (source.data, source.mask, source.handle)
      return data + mask + handle
    }

    #if CONCOURSE
      @Test("S114 the values of a file-system object source, inferred and by context")
      func fileSystemObject() throws {
        try withFile { file, _ in
          let source = DispatchSource.makeFileSystemObjectSource(
            fileDescriptor: file, eventMask: [.write, .delete])
          let event = source.data
          #expect(!event.contains(.delete))
          switch source.data {
          case .write: Issue.record("nothing was written")
          case [.write, .delete]: Issue.record("nothing happened")
          default: break
          }
          let mask = source.mask
          #expect(mask.contains(.delete) && mask == [.write, .delete])
          let descriptor = {
            let handle = source.handle
            return handle
          }()
          #expect(type(of: descriptor) == Int32.self && descriptor == file)

          let bits: UInt = source.mask
          let number: UInt = source.handle
          #expect(bits == 3 && number == UInt(file))
          #expect([source].map(\.mask) == [[.write, .delete]])
          let contains = contains(.write, source)
          #expect(contains)
          retireUnused(source)
        }
      }

      private func contains<Source: DispatchSourceFileSystemObject>(
        _ event: DispatchSource.FileSystemEvent, _ source: Source
      ) -> Bool {
        let (data, mask, handle) = (source.data, source.mask, source.handle)
        return type(of: handle) == Int32.self && data.isEmpty && mask.contains(event)
      }

      @Test("S114 the values of a process source, inferred and by context")
      func process() {
        let source = DispatchSource.makeProcessSource(identifier: getpid(), eventMask: .exit)
        let pid: Int32 = {
          let handle = source.handle
          return handle
        }()
        #expect(pid == getpid())
        let event = source.data
        if event.contains(.exit) { Issue.record("the process runs") }
        switch source.mask {
        case .exit: break
        default: Issue.record("the mask is .exit")
        }
        let bits: UInt = source.mask
        let number: UInt = source.handle
        #expect(bits == 0x8000_0000 && number == UInt(getpid()))
        let isExit = isExit(source)
        #expect(isExit)
        retireUnused(source)
      }

      private func isExit(_ source: some DispatchSourceProcess) -> Bool {
        let (data, mask, handle) = (source.data, source.mask, source.handle)
        return handle == getpid() && data.isEmpty && mask == .exit
      }

      @Test("S114 the values of a memory pressure source, inferred and by context")
      func memoryPressure() {
        let source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical])
        let level = source.data
        #expect(!level.contains(.critical))
        switch source.mask {
        case [.warning, .critical]: break
        case .warning: Issue.record("the mask has both")
        default: Issue.record("the mask has both")
        }
        let (bits, number): (UInt, UInt) = (source.mask, source.handle)
        let handle = source.handle
        #expect(bits == 6 && number == 0 && type(of: handle) == UInt.self)
        let hasWarning = hasWarning(source)
        #expect(hasWarning)
        retireUnused(source)
      }

      private func hasWarning(_ source: some DispatchSourceMemoryPressure) -> Bool {
        let (data, mask) = (source.data, source.mask)
        return data.isEmpty && mask.contains(.warning)
      }

      @Test("S114 the class has UInt, and the other types where the context asks for them")
      func casts() {
        let source = DispatchSource.makeProcessSource(identifier: getpid(), eventMask: .exit)
        let object = source as! DispatchSource
        let (data, mask, handle) = (object.data, object.mask, (source as! DispatchSource).handle)
        #expect(type(of: data) == UInt.self && type(of: handle) == UInt.self)
        #expect(mask == 0x8000_0000 && handle == UInt(getpid()))
        let events: DispatchSource.ProcessEvent = object.mask
        let pid: pid_t = object.handle
        #expect(events == .exit && pid == getpid())

        let plain: any DispatchSourceProtocol = source
        let bits = plain.mask
        #expect(type(of: bits) == UInt.self && bits == mask)
        if let again = plain as? any DispatchSourceProcess {
          let (event, pid) = (again.mask, again.handle)
          #expect(event.contains(.exit) && type(of: pid) == pid_t.self)
        }
        #expect(isExit(object))
        retireUnused(source)
      }

      /// A source must not be released inactive.
      private func retireUnused(_ source: any DispatchSourceProtocol) {
        source.activate()
        #expect(retire(source))
      }
    #endif
  }
}
