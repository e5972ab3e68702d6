// A finished program: `Scripts/package --check` builds it for the toolchain's Dispatch and runs it on Concourse.
import Foundation

func run() async {
  let squares = await withTaskGroup(of: Int.self) { group in
    for number in 1...100 { group.addTask { number * number } }
    return await group.reduce(0, +)
  }
  print("tasks: \(squares)")

  let operations = OperationQueue()
  for _ in 1...10 { operations.addOperation {} }
  await withCheckedContinuation { finished in operations.addBarrierBlock { finished.resume() } }
  print("operations: done")

  let queue = DispatchQueue(label: "finished")
  let label = await withCheckedContinuation { finished in
    queue.asyncAfter(deadline: .now() + .milliseconds(1)) { finished.resume(returning: queue.label) }
  }
  print("queue: \(label)")
  exit(0)
}

Task { await run() }
dispatchMain()
