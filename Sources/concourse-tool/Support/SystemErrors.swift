import Glibc

/// `errno`, for files that do not import the C library.
func lastError() -> Int32 { errno }

/// The system's text for an error number.
func describe(error: Int32) -> String {
  String(cString: strerror(error))
}
