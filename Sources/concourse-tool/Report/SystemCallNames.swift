/// System calls by their numbers: those in which threads sleep.
extension Processor {
  var futex: Int {
    switch self {
    case .x86: 202
    case .arm64: 98
    }
  }

  /// What `epoll_wait` calls.
  var epollWait: Int {
    switch self {
    case .x86: 232
    case .arm64: 22
    }
  }

  func name(ofSystemCall number: Int) -> String {
    let names =
      switch self {
      case .x86: Self.namesOfX86
      case .arm64: Self.namesOfArm
      }
    return names[number] ?? "system call \(number)"
  }

  /// Whether its first argument is a descriptor.
  func takesDescriptor(_ number: Int) -> Bool {
    switch self {
    case .x86: Self.descriptorCallsOfX86.contains(number)
    case .arm64: Self.descriptorCallsOfArm.contains(number)
    }
  }

  private static let namesOfX86: [Int: String] = [
    0: "read", 1: "write", 7: "poll", 9: "mmap", 16: "ioctl", 17: "pread", 18: "pwrite", 19: "readv",
    20: "writev",
    23: "select",
    34: "pause", 35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg",
    47: "recvmsg", 56: "clone", 61: "wait4", 65: "semop", 72: "fcntl", 73: "flock", 74: "fsync",
    75: "fdatasync",
    128: "rt_sigtimedwait", 130: "rt_sigsuspend", 202: "futex", 220: "semtimedop", 230: "clock_nanosleep",
    232: "epoll_wait", 243: "mq_timedreceive", 247: "waitid", 257: "openat", 270: "pselect", 271: "ppoll",
    281: "epoll_pwait", 285: "fallocate", 288: "accept4", 295: "preadv", 296: "pwritev", 299: "recvmmsg",
    306: "syncfs", 307: "sendmmsg", 326: "copy_file_range", 327: "preadv2", 328: "pwritev2",
    426: "io_uring_enter", 435: "clone3",
    441: "epoll_pwait2", 449: "futex_waitv",
  ]

  private static let namesOfArm: [Int: String] = [
    22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 47: "fallocate", 56: "openat", 63: "read",
    64: "write", 65: "readv", 66: "writev", 67: "pread", 68: "pwrite", 69: "preadv", 70: "pwritev",
    72: "pselect", 73: "ppoll", 82: "fsync", 83: "fdatasync", 95: "waitid", 98: "futex", 101: "nanosleep",
    115: "clock_nanosleep", 133: "rt_sigsuspend", 137: "rt_sigtimedwait", 183: "mq_timedreceive",
    192: "semtimedop", 193: "semop", 202: "accept", 203: "connect", 206: "sendto", 207: "recvfrom",
    211: "sendmsg", 212: "recvmsg", 220: "clone", 222: "mmap", 242: "accept4", 243: "recvmmsg",
    260: "wait4", 267: "syncfs", 269: "sendmmsg", 285: "copy_file_range", 286: "preadv2", 287: "pwritev2",
    426: "io_uring_enter", 435: "clone3", 441: "epoll_pwait2", 449: "futex_waitv",
  ]

  private static let descriptorCallsOfX86: Set<Int> = [
    0, 1, 16, 17, 18, 19, 20, 42, 43, 44, 45, 46, 47, 72, 73, 74, 75, 232, 281, 285, 288, 295, 296, 299, 306,
    307, 327,
    328, 426, 441,
  ]

  private static let descriptorCallsOfArm: Set<Int> = [
    22, 25, 29, 32, 47, 63, 64, 65, 66, 67, 68, 69, 70, 82, 83, 202, 203, 206, 207, 211, 212, 242, 243,
    267, 269, 286, 287, 426, 441,
  ]
}
