import Glibc

/// Replaces this process with the program. The program thus keeps the process identifier and the terminal, receives
/// signals directly, and its exit status is the command's.
enum Launcher {
  /// - Parameters:
  ///   - path: the program's file.
  ///   - firstArgument: The index of the program's name in this process's arguments. Arguments are passed on as bytes,
  ///     since they need not be valid text.
  /// - Returns: `errno`; only if the program cannot be run.
  static func replaceProcess(with path: String, firstArgument: Int, environment: Environment) -> Int32 {
    // SAFETY: the rest of the kernel's argument array, with its terminating null.
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
