import Glibc

/// Ends the process, loudly, unless the work was done: a wrong result must never become a number.
func verify<Value: Equatable>(
  _ observed: Value, equals expected: Value, _ what: String, row: StaticString = #fileID
) {
  guard observed != expected else { return }
  fail("\(row): \(what): expected \(expected), observed \(observed)")
}

func fail(_ message: String) -> Never {
  var line = "benchmark failed: \(message)\n"
  // SAFETY: the bytes are used within the closure only.
  line.withUTF8 { bytes in _ = write(STDERR_FILENO, bytes.baseAddress, bytes.count) }
  exit(70)
}

/// What 0 + 1 + ... + (count - 1) must come to.
func sumOfIndices(below count: Int) -> Int { count * (count - 1) / 2 }
