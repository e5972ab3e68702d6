import Glibc

/// Turns this process into the program. So its identifier, its terminal and its exit status are the program's
/// without anybody passing them on, and a signal reaches whom it was sent to.
enum Launcher {
  /// - Parameters:
  ///   - path: the program's file.
  ///   - firstArgument: the index, among this process's own arguments, of the program's name. They are handed
  ///     on as they came: nobody promises that they are text.
  /// - Returns: `errno`; only if the program cannot be run.
  static func become(_ path: String, firstArgument: Int, environment: Environment) -> Int32 {
    // SAFETY: the kernel's array, of which a part is passed on, its terminating null included.
    let arguments = CommandLine.unsafeArgv + firstArgument
    var pointers: [UnsafeMutablePointer<CChar>?] = environment.entries.map { entry in
      let copy = UnsafeMutablePointer<CChar>.allocate(capacity: entry.count + 1)
      for (index, byte) in entry.enumerated() { copy[index] = CChar(bitPattern: byte) }
      copy[entry.count] = 0
      return copy
    }
    pointers.append(nil)
    execve(path, arguments, pointers)
    let error = errno
    for pointer in pointers { pointer?.deallocate() }
    return error
  }
}
