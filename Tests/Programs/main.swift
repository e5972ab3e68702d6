// The command behind Scripts/programs. A parent starts a worker, which runs programs and says which; so a
// crash or a hang ends the worker only, and the parent finds the smallest program that still does it.

import Glibc

var options = Options(CommandLine.arguments.dropFirst())
if let minutes = options.soakMinutes {
  exit(Soak.run(minutes: minutes, seed: options.seed) ? 0 : 1)
} else if options.isWorker {
  work(options)
} else {
  exit(supervise(options) ? 0 : 1)
}
