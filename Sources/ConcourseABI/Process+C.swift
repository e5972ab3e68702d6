// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import ConcourseEvents
internal import Glibc

// The process: threads, forks, signals.

@c(_dispatch_is_multithreaded)
package func _dispatch_is_multithreaded() -> Bool { ProcessFacts.isMultithreaded }

@c(_dispatch_is_fork_of_multithreaded_parent)
package func _dispatch_is_fork_of_multithreaded_parent() -> Bool { ProcessFacts.isForkOfMultithreadedParent }

@c(_dispatch_prohibit_transition_to_multithreaded)
package func _dispatch_prohibit_transition_to_multithreaded(_ prohibit: Bool) {
  ProcessFacts.forbidThreads(prohibit)
}

// The C library reports the forks that go through it. These functions are for forks that bypass it.

@c(dispatch_atfork_prepare)
package func dispatch_atfork_prepare() {}

@c(dispatch_atfork_parent)
package func dispatch_atfork_parent() {}

@c(dispatch_atfork_child)
package func dispatch_atfork_child() { ProcessFacts.noteFork() }

@c(dispatch_allow_send_signals)
package func dispatch_allow_send_signals(_ signal: Int32) -> Int32 {
  let failure = ProcessFacts.allowSignal(signal)
  guard failure != 0 else { return 0 }
  errno = failure
  return -1
}
