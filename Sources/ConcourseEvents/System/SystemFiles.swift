internal import CConcourse
internal import Glibc

// The system calls on files and rings, one function each. They return a value, or the negated errno.

extension System {
  // MARK: Descriptors

  static func open(_ path: [CChar], _ flags: Int32, _ mode: mode_t) -> Int {
    call(.open) { result(Glibc.open(path, flags, mode)) }
  }

  /// Closes a descriptor, once: after an interruption the number may belong to another file.
  static func close(_ descriptor: Int32) -> Int {
    call(.close) {
      let outcome = result(Glibc.close(descriptor))
      return outcome == -Int(EINTR) ? 0 : outcome
    }
  }

  static func flags(of descriptor: Int32) -> Int {
    call(.control) { result(fcntl(descriptor, F_GETFL)) }
  }

  static func setFlags(of descriptor: Int32, to flags: Int32) -> Int {
    call(.control) { result(fcntl(descriptor, F_SETFL, flags)) }
  }

  /// Whether a file is in the kernel's memory: of memfd_create, or on a tmpfs.
  static func hasSeals(_ descriptor: Int32) -> Bool {
    call(.control) { concourse_has_seals(descriptor) ? 1 : 0 } > 0
  }

  static func status(of descriptor: Int32, _ status: inout stat) -> Int {
    call(.status) { result(fstat(descriptor, &status)) }
  }

  /// Whether two descriptors refer to one open file description; false if the kernel does not say.
  static func isSameFile(_ descriptor: Int32, _ other: Int32) -> Bool {
    call(.control) { concourse_is_same_file(descriptor, other) ? 1 : 0 } > 0
  }

  static func status(ofPath path: [CChar], followsLinks: Bool, _ status: inout stat) -> Int {
    call(.status) { result(followsLinks ? stat(path, &status) : lstat(path, &status)) }
  }

  static func position(of descriptor: Int32) -> Int {
    call(.seek) { result(lseek(descriptor, 0, SEEK_CUR)) }
  }

  static func setPosition(of descriptor: Int32, to position: Int) -> Int {
    call(.seek) { result(lseek(descriptor, position, SEEK_SET)) }
  }

  /// The bytes from a file's position to its end.
  static func bytesLeft(in descriptor: Int32) -> Int {
    var status = stat()
    let failure = Self.status(of: descriptor, &status)
    guard failure == 0 else { return failure }
    let position = Self.position(of: descriptor)
    return position < 0 ? position : max(0, status.st_size - position)
  }

  /// Whether the kernel makes a regular file's bytes when it is read.
  static func isGenerated(_ descriptor: Int32) -> Bool {
    call(.status) { Int(concourse_generated(descriptor).rawValue) } > 0
  }

  /// Whether such a file is in /proc.
  static func isInProc(_ descriptor: Int32) -> Bool {
    call(.status) { concourse_generated(descriptor) == CONCOURSE_GENERATED_IN_PROC ? 1 : 0 } > 0
  }

  // MARK: Transfers, at `offset`, or at the file's own position if that is negative

  static func read(_ descriptor: Int32, _ bytes: UnsafeMutableRawPointer, _ count: Int, _ offset: Int) -> Int
  {
    call(.read) {
      result(offset < 0 ? Glibc.read(descriptor, bytes, count) : pread(descriptor, bytes, count, offset))
    }
  }

  /// Reads bytes that the kernel has in memory; `-EAGAIN` if the read would wait for a disk.
  static func readCached(
    _ descriptor: Int32, _ bytes: UnsafeMutableRawPointer, _ count: Int, _ offset: Int
  ) -> Int {
    call(.read) { concourse_read_cached(descriptor, bytes, UInt64(count), Int64(offset)) }
  }

  static func write(_ descriptor: Int32, _ pieces: UnsafeMutableBufferPointer<iovec>, _ offset: Int) -> Int {
    call(.write) {
      let count = Int32(pieces.count)
      return result(
        offset < 0
          ? writev(descriptor, pieces.baseAddress, count)
          : pwritev(descriptor, pieces.baseAddress, count, offset))
    }
  }

  // MARK: Rings and eventfds

  static func createEvent() -> Int { call(.eventCreate) { result(concourse_eventfd()) } }

  static func setUp(_ ring: inout concourse_ring, entries: UInt32) -> Int {
    call(.ringSetup) { Int(concourse_ring_setup(&ring, entries)) }
  }

  static func map(_ ring: inout concourse_ring) -> Int { call(.map) { Int(concourse_ring_map(&ring)) } }

  static func register(_ event: Int32, with ring: inout concourse_ring) -> Int {
    call(.ringRegister) { Int(concourse_ring_register_event(&ring, event)) }
  }

  /// Submits the last prepared request to the kernel.
  static func enter(_ ring: inout concourse_ring) -> Int {
    call(.ringEnter) { Int(concourse_ring_enter(&ring)) }
  }
}
