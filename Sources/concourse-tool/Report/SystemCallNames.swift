import Glibc

/// System calls by their numbers on x86-64: those in which threads sleep.
enum SystemCallNames {
  static let futex = 202
  static let epollWait = 232

  private static let names: [Int: String] = [
    0: "read", 1: "write", 7: "poll", 16: "ioctl", 17: "pread", 18: "pwrite", 19: "readv", 20: "writev",
    23: "select",
    34: "pause", 35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg",
    47: "recvmsg", 56: "clone", 61: "wait4", 65: "semop", 72: "fcntl", 73: "flock", 74: "fsync",
    75: "fdatasync",
    126: "mmap",
    128: "rt_sigtimedwait", 130: "rt_sigsuspend", 202: "futex", 220: "semtimedop", 230: "clock_nanosleep",
    232: "epoll_wait", 243: "mq_timedreceive", 247: "waitid", 257: "openat", 270: "pselect", 271: "ppoll",
    281: "epoll_pwait", 285: "fallocate", 288: "accept4", 295: "preadv", 296: "pwritev", 299: "recvmmsg",
    306: "syncfs", 307: "sendmmsg", 326: "copy_file_range", 327: "preadv2", 328: "pwritev2",
    426: "io_uring_enter", 435: "clone3",
    441: "epoll_pwait2", 449: "futex_waitv",
  ]

  /// Those whose first argument is a descriptor.
  private static let descriptorCalls: Set<Int> = [
    0, 1, 16, 17, 18, 19, 20, 42, 43, 44, 45, 46, 47, 72, 73, 74, 75, 232, 281, 285, 288, 295, 296, 299, 306,
    307, 327,
    328, 426, 441,
  ]

  static func name(_ number: Int) -> String { names[number] ?? "system call \(number)" }

  static func takesDescriptor(_ number: Int) -> Bool { descriptorCalls.contains(number) }
}

enum WallClock {
  static var now: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}
