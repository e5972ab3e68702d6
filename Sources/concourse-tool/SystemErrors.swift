import Glibc

/// `errno`, for files that need nothing else of the C library.
func lastError() -> Int32 { errno }

/// What the system says about an error number.
func describe(error: Int32) -> String {
  String(cString: strerror(error))
}
