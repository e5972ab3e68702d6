import Glibc

/// A pipe whose ends do not block and are not inherited.
struct Pipe: Sendable {
  let reading: Int32
  let writing: Int32

  init() {
    var ends: [Int32] = [-1, -1]
    verify(pipe(&ends), equals: 0, "pipe")
    for end in ends {
      verify(fcntl(end, F_SETFD, FD_CLOEXEC), equals: 0, "fcntl")
      verify(fcntl(end, F_SETFL, O_NONBLOCK), equals: 0, "fcntl")
    }
    (reading, writing) = (ends[0], ends[1])
  }

  func send() {
    var byte: UInt8 = 1
    verify(write(writing, &byte, 1), equals: 1, "bytes written")
  }

  func receive() {
    var byte: UInt8 = 0
    verify(read(reading, &byte, 1), equals: 1, "bytes in the pipe")
  }
}
