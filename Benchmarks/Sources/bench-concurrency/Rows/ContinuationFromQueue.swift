import Dispatch

extension Row {
  static let continuationFromQueue = Row(
    name: "continuation-from-queue", question: "a task waits for a callback that a serial queue runs",
    count: 50_000
  ) { count in
    let queue = DispatchQueue(label: "callbacks")
    var sum = 0
    for index in 0..<count {
      sum += await withCheckedContinuation { continuation in
        queue.async { continuation.resume(returning: index) }
      }
    }
    verify(sum, equals: sumOfIndices(below: count), "the sum of what the callbacks brought")
  }
}
