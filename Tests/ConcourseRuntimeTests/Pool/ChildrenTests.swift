import Glibc
import Testing

@testable import ConcourseRuntime

extension Engine {
  /// Processes that items start.
  @Suite("Children", .enabled(if: !Sanitizer.isThread))
  struct ChildrenTests {
    @Test("S146 a process that an item starts has the signal mask and the nice value of the process")
    func posixSpawn() async {
      await #expect(processExitsWith: .success) {
        let mayRaise = SystemThread.mayTake(nice: processNice())
        for qosClass in [DispatchQoS.QoSClass.userInteractive, .default, .utility, .background] {
          let isLowered = qosClass == .utility || qosClass == .background
          let found = Shared("")
          let done = DispatchSemaphore(value: 0)
          DispatchQueue.global(qos: qosClass).async {
            let facts = factsOfChild()
            found.change { $0 = facts }
            done.signal()
          }
          #expect(comes(done))
          let facts = found.value.split(separator: " ")
          // While the main thread makes a thread, the C library has blocked its signals.
          #expect(awaitValue { facts[0] == maskOfProcess() })
          #expect(isLowered && !mayRaise || facts[1] == "\(processNice())")
        }
      }
    }
  }
}

private func processNice() -> Int32 { getpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(getpid())) }

/// The signals that this process blocked when it began, as /proc writes them.
private func maskOfProcess() -> Substring { blockedSignals(in: text(of: "/proc/self/status")) }

private func blockedSignals(in status: String) -> Substring {
  let line = status.split(separator: "\n").first { $0.hasPrefix("SigBlk:") }
  return line!.dropFirst("SigBlk:\t".count)
}

/// The signal mask and the nice value of a child that writes them to a file.
private func factsOfChild() -> String {
  var name = Array("/tmp/concourse-XXXXXX".utf8CString)
  let file = mkstemp(&name)
  defer {
    close(file)
    unlink(name)
  }
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  posix_spawn_file_actions_adddup2(&actions, file, 1)
  let words = ["cat", "/proc/self/status", "/proc/self/stat"]
  let arguments: [UnsafeMutablePointer<CChar>?] = words.map { word in strdup(word) } + [nil]
  defer { for argument in arguments { free(argument) } }
  var child: pid_t = 0
  #expect(posix_spawnp(&child, "cat", &actions, nil, arguments, environ) == 0)
  posix_spawn_file_actions_destroy(&actions)
  #expect(waitpid(child, nil, 0) == child)
  let written = text(of: "/proc/self/fd/\(file)")
  let numbers = written[written.lastIndex(of: ")")!...].split(separator: " ")
  // The 19th field; the third follows the name.
  return "\(blockedSignals(in: written)) \(numbers[17])"
}
