import Glibc
import Testing

@testable import ConcourseRuntime

extension Crash {
  @Suite("Work items run, waited for or notified too often")
  struct WorkItemCrashTests {
    @Test("S56 waiting a second time after a wait that succeeded")
    func waitTwice() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let item = DispatchWorkItem {}
        item.perform()
        wait(for: item)
        wait(for: item)
      }
      end.says("a work item was waited for twice")
    }

    @Test("S57 waiting for an item that ran twice")
    func waitAfterTwo() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let item = DispatchWorkItem {}
        item.perform()
        item.perform()
        wait(for: item)
      }
      end.says("a work item that ran 2 times was waited for; only one that runs once can be")
    }

    @Test("S57 running an item again that was waited for, directly or from a queue")
    func runAfterWait() async {
      let direct = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let item = DispatchWorkItem {}
        item.perform()
        wait(for: item)
        item.perform()
      }
      direct.says("a work item was run again after it had been waited for")
      let queued = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let item = DispatchWorkItem {}
        DispatchQueue.global().async(execute: item)
        wait(for: item)
        DispatchQueue.global().async(execute: item)
        awaitDeath()
      }
      queued.says("a work item was run again after it had been waited for")
    }

    @Test("S57 skipped executions of a cancelled item count")
    func cancelledCounts() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let item = DispatchWorkItem {}
        item.cancel()
        item.perform()
        item.perform()
        item.perform()
        wait(for: item)
      }
      end.says("a work item that ran 3 times was waited for; only one that runs once can be")
    }

    @Test("S58 a notification of an item that ran twice (trap 15)")
    func notifyAfterTwo() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let item = DispatchWorkItem {}
        item.perform()
        item.perform()
        item.notify(queue: .global()) {}
      }
      end.says("notify on a work item that ran 2 times; only one that runs once can have notifications")
    }

    @Test("S53 undefined flag bits")
    func unknownFlags() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = DispatchWorkItem(flags: DispatchWorkItemFlags(rawValue: 0x4000)) {}
      }
      end.says("DispatchWorkItem(flags:) with unknown bits 0x4000")
    }
  }
}

private func wait(for item: DispatchWorkItem) { item.wait() }
