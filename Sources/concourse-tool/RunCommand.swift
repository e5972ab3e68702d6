import Glibc

/// `concourse run`: finds the program and the library, checks that the one will run on the other, and becomes
/// the program.
enum RunCommand {
  /// The exit statuses of `env`, `timeout` and their like.
  enum Status {
    static let failure: Int32 = 125
    static let notRunnable: Int32 = 126
    static let notFound: Int32 = 127
    /// Of `--check`.
    static let notSwitchable: Int32 = 1
  }

  /// - Parameter arguments: what follows the word `run`.
  /// - Returns: the exit status, if the process has not become the program.
  static func run(_ arguments: [String]) -> Int32 {
    switch RunOptions.parse(arguments) {
    case .help:
      Terminal.say(RunOptions.help)
      return 0
    case .unusable(let reason):
      Terminal.complain("\(reason); 'concourse run --help' tells more")
      return Status.failure
    case .run(let options):
      return run(options)
    }
  }

  private static func run(_ options: RunOptions) -> Int32 {
    let environment = Environment.current()
    let path: String
    switch ProgramSearch.find(options.program, searchPath: environment.text(of: "PATH")) {
    case .found(let found):
      path = found
    case .absent:
      Terminal.complain("\(options.program): there is no such program")
      return Status.notFound
    case .notRunnable(let found, let error):
      Terminal.complain("\(found) cannot be run: \(describe(error: error))")
      return Status.notRunnable
    }

    let library: RuntimeLibrary
    do {
      library = try RuntimeLibrary.find(
        chosen: options.library, command: FilePath.resolved("/proc/self/exe") ?? "concourse")
    } catch {
      Terminal.complain(error.reason)
      return Status.failure
    }
    let search = LibrarySearch(environment: environment)
    let verdict = ProgramCheck(target: library.image.target, search: search).verdict(on: path)

    let companions = Result { () throws(RuntimeLibrary.Failure) in
      try library.companions(in: search, for: try? ElfImage(path: path), children: options.children)
    }
    if options.check { return report(verdict, on: path, companions) }
    guard isAllowed(verdict, path: path, options: options) else { return Status.failure }
    let loaded: [String]
    do {
      loaded = try companions.get() + [library.path]
    } catch {
      Terminal.complain(error.reason)
      return Status.failure
    }
    if options.verbose {
      Terminal.complain("\(path) runs on \(library.path)\(options.children ? ", and its children" : "")")
    }
    if !library.isOwn && !options.children {
      Terminal.complain("warning: \(library.path) is not Concourse's, and the program's children get it, too")
    }
    let error = Launcher.become(
      path, firstArgument: 2 + options.programIndex,
      environment: environment.switched(to: loaded, children: options.children))
    Terminal.complain("\(path) cannot be run: \(describe(error: error))")
    return error == ENOENT ? Status.notFound : Status.notRunnable
  }

  private static func report(
    _ verdict: ProgramCheck.Verdict, on path: String, _ companions: Result<[String], RuntimeLibrary.Failure>
  ) -> Int32 {
    if verdict.isSwitchable, case .failure(let failure) = companions {
      Terminal.say("\(path) cannot be switched: \(failure.reason)")
      return Status.notSwitchable
    }
    Terminal.say("\(path) \(verdict.description)")
    return verdict.isSwitchable ? 0 : Status.notSwitchable
  }

  private static func isAllowed(_ verdict: ProgramCheck.Verdict, path: String, options: RunOptions) -> Bool {
    let said = "\(path) \(verdict.description)"
    if verdict.isSwitchable {
      if options.verbose { Terminal.complain(said) }
      return true
    }
    if options.children && verdict.passesOn {
      if options.verbose { Terminal.complain("\(said); switching what it starts") }
      return true
    }
    if options.force {
      Terminal.complain("warning: \(said); run nevertheless (--force)")
      return true
    }
    Terminal.complain(said)
    return false
  }
}

extension LibrarySearch {
  /// The search of a process with this environment.
  init(environment: Environment) {
    libraryPath = (environment.text(of: "LD_LIBRARY_PATH") ?? "").split { $0 == ":" || $0 == ";" }.map(
      String.init)
    cache = LoaderCache(path: "/etc/ld.so.cache")
    #if arch(arm64)
      let triplet = "aarch64-linux-gnu"
    #else
      let triplet = "x86_64-linux-gnu"
    #endif
    defaults = ["/lib/\(triplet)", "/usr/lib/\(triplet)", "/lib64", "/usr/lib64", "/lib", "/usr/lib"]
  }
}
