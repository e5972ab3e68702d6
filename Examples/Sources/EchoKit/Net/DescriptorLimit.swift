import Glibc

/// How many descriptors this process may have open, and what that means for connections.
package enum DescriptorLimit {
  /// Descriptors that are not connections: standard input and output, the listener, what the runtime
  /// and the C library open.
  package static let reserve = 32

  /// Raises the soft limit as far as `connections` need, which the hard limit may not allow.
  ///
  /// - Returns: how many connections there is room for, at most `connections`.
  package static func makeRoom(for connections: Int) -> Int {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return connections }
    let wanted = rlim_t(connections + reserve)
    if limit.rlim_cur < wanted {
      // A soft limit of 1,024 is usual, for the sake of programs with select(); the hard one is what the
      // administrator means.
      var raised = limit
      raised.rlim_cur = min(wanted, limit.rlim_max)
      if setrlimit(resource, &raised) == 0 { limit = raised }
    }
    guard limit.rlim_cur < wanted else { return connections }
    return max(1, Int(limit.rlim_cur) - reserve)
  }
}
