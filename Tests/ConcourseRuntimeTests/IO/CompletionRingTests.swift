import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  @Suite("The ring for files")
  struct CompletionRingTests {
    private static let refusals: [(SystemCall, Int32)] = [
      (.ringSetup, ENOSYS), (.ringSetup, EPERM), (.ringSetup, ENOMEM), (.ringSetup, EMFILE),
      (.eventCreate, EMFILE), (.map, ENOMEM), (.ringRegister, ENOMEM),
    ]

    @Test(
      "trap 19: without a ring, threads read; temporary refusals are tried again", arguments: refusals
    )
    func refused(_ call: SystemCall, _ error: Int32) {
      CompletionRing.forget()
      defer { CompletionRing.forget() }
      let isForGood = error == ENOSYS || error == EPERM
      FilePolicy.with(.ring) {
        let descriptors = ringDescriptors()
        let file = TemporaryFile(pattern(100_000))
        let channel = TestChannel(.random, file.descriptor)
        SystemScript.refusing(call, with: error) {
          #expect(CompletionRing.make().error == error)
          #expect(DispatchIO.fileBackend == .threads)
          #expect(channel.read().finished().last == Call(true, []))
          #expect(channel.write([1, 2]).finished() == [Call(true, nil)])
        }
        #expect(ringDescriptors() == descriptors)
        if isForGood {
          #expect(DispatchIO.fileBackend == .threads)
        } else {
          #expect(channel.read(10).finished() == [Call(true, [1, 2] + Array(pattern(10)[2...]))])
        }
        channel.end()
      }
    }

    /// Open descriptors of the kinds that a ring uses: other kinds may still be closed for an earlier test.
    private func ringDescriptors() -> Int {
      (0..<1000).count { descriptor in
        var target = [UInt8](repeating: 0, count: 64)
        let length = target.withUnsafeMutableBytes {
          readlink("/proc/self/fd/\(descriptor)", $0.baseAddress!.assumingMemoryBound(to: CChar.self), 64)
        }
        let kind = String(decoding: target.prefix(max(length, 0)), as: UTF8.self)
        return kind == "anon_inode:[io_uring]" || kind == "anon_inode:[eventfd]"
      }
    }

    @Test("trap 19: a ring that accepts no request: threads read", arguments: [EBUSY, ENOMEM, EPERM])
    func full(_ error: Int32) {
      FilePolicy.with(.ring) {
        let file = TemporaryFile(pattern(100_000))
        let channel = TestChannel(.random, file.descriptor)
        SystemScript.refusing(.ringEnter, with: error, times: 3) {
          for _ in 0..<6 { #expect(channel.read(100_000).finished() == [Call(true, pattern(100_000))]) }
        }
        channel.end()
      }
    }

    @Test("the ring serves reads that the kernel cannot answer at once, if this system has one")
    func used() {
      guard CompletionRing.make().error == 0 else { return }
      CompletionRing.forget()
      FilePolicy.with(.ring) {
        #expect(DispatchIO.fileBackend == .ring)
        let file = TemporaryFile(pattern(500_000))
        let channel = TestChannel(.random, file.descriptor)
        SystemScript.refusing(.read, with: EIO) {
          // `read` is refused, so the ring must have done it.
          let calls = channel.read(500_000)
          #expect(calls.finished() == [Call(true, pattern(500_000))])
        }
        channel.end()
      }
      FilePolicy.with(.threads) { #expect(DispatchIO.fileBackend == .threads) }
    }

    @Test("more pending requests than the ring has slots")
    func late() {
      guard let ring = CompletionRing.make().ring else { return }
      final class Client: RingClient {
        let results = Shared<[Int]>([])
        let told = DispatchSemaphore(value: 0)
        func ringDidComplete(_ result: Int) {
          results.change { $0.append(result) }
          told.signal()
        }
      }
      let pipe = Ends.pipe()
      let client = Client()
      let memory = UnsafeMutableRawPointer.allocate(byteCount: 1000, alignment: 16)
      defer { memory.deallocate() }
      var accepted = 0
      // There is nothing to read, so all of these wait.
      for number in 0..<100 {
        switch ring.submit(write: false, pipe.reader, memory + number, 1, offset: -1, for: client) {
        case .accepted: accepted += 1
        case .refused: break
        }
      }
      #expect(accepted == 64)
      let text = String(repeating: "x", count: accepted)
      pipe.send(text)
      for _ in 0..<accepted { #expect(comes(client.told)) }
      #expect(client.results.value == Array(repeating: 1, count: accepted))
      _ = Unmanaged.passRetained(ring)
    }

    @Test("workers stay while the engine cannot tell whether the program has a ring of its own")
    func unknownRings() async {
      await #expect(processExitsWith: .success) {
        let descriptors = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var former = rlimit()
        getrlimit(descriptors, &former)
        var none = rlimit(rlim_cur: 0, rlim_max: former.rlim_max)
        setrlimit(descriptors, &none)
        let mayCancel = SystemThread.endMayCancelRequests
        setrlimit(descriptors, &former)
        precondition(mayCancel)
        precondition(!SystemThread.endMayCancelRequests)
      }
    }
  }
}
