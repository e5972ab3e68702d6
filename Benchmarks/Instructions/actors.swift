// A job of an actor, many times: actors ROW COUNT, as in operations.c. Swift's runtime submits each job with
// `dispatch_async_f` to a global queue. Its own instructions are counted too; they change with the toolchain.

import Glibc

/// Yields: each time, the rest of the method becomes a job of the actor, and the runtime enqueues the actor.
actor Yielding {
  func run(_ count: Int) async {
    for _ in 0..<count { await Task.yield() }
  }
}

// Only our library has this symbol: the toolchain's would be measured without a word.
guard dlsym(nil, "_dispatch_source_type_proc") != nil else {
  fatalError("the program does not run on Concourse")
}
guard CommandLine.arguments.count == 3, CommandLine.arguments[1] == "actor-job",
  let count = Int(CommandLine.arguments[2])
else { fatalError("usage: actors actor-job COUNT") }
await Yielding().run(count)
