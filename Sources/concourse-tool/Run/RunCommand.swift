import Glibc

/// `concourse run`: finds the program and the library, checks that they fit, and replaces the process with the program.
enum RunCommand: Command {
  /// Exit statuses as `env` and `timeout` use them.
  enum Status {
    static let failure: Int32 = 125
    static let notRunnable: Int32 = 126
    static let notFound: Int32 = 127
    /// The program has not been started.
    static let notStarted = failure...notFound
    /// With `--check`.
    static let notSwitchable: Int32 = 1
  }

  static let summary = "runs a finished program on Concourse instead of its own libdispatch.so"

  static func run(_ options: RunOptions, _ arguments: [String]) -> Int32 {
    let program = arguments[options.target]
    let environment = Environment.current()
    let path: String
    switch ProgramSearch.find(program, searchPath: environment.text(of: "PATH")) {
    case .found(let found):
      path = found
    case .absent:
      return refuse("\(program): no such program", options, Status.notFound)
    case .notRunnable(let found, let error):
      return refuse("\(found) cannot be run: \(describe(error: error))", options, Status.notRunnable)
    }

    let library: RuntimeLibrary
    do {
      library = try RuntimeLibrary.find(
        chosen: options.library, command: FilePath.resolved("/proc/self/exe") ?? "concourse")
    } catch {
      Terminal.printError(error.reason)
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
      Terminal.printError(error.reason)
      return Status.failure
    }
    if options.verbose {
      Terminal.printError(
        "\(path) runs on \(library.description)\(options.children ? ", and so do its children" : "")")
    }
    if !library.isConcourse && !options.children {
      Terminal.printError(
        "warning: \(library.path) is not Concourse's libdispatch.so; the program's children will load it too")
    }
    let error = Launcher.replaceProcess(
      with: path, firstArgument: 2 + options.target,
      environment: environment.configured(by: options).switched(to: loaded, children: options.children))
    Terminal.printError("\(path) cannot be run: \(describe(error: error))")
    return error == ENOENT ? Status.notFound : Status.notRunnable
  }

  /// With `--check` the reason is the result.
  private static func refuse(_ reason: String, _ options: RunOptions, _ status: Int32) -> Int32 {
    guard options.check else {
      Terminal.printError(reason)
      return status
    }
    Terminal.printLine(ForeignText.line(reason))
    return Status.notSwitchable
  }

  private static func report(
    _ verdict: ProgramCheck.Verdict, on path: String, _ companions: Result<[String], RuntimeLibrary.Failure>
  ) -> Int32 {
    if verdict.isSwitchable, case .failure(let failure) = companions {
      Terminal.printLine(ForeignText.line("\(path) cannot be switched: \(failure.reason)"))
      return Status.notSwitchable
    }
    Terminal.printLine(ForeignText.line("\(path) \(verdict.description)"))
    return verdict.isSwitchable ? 0 : Status.notSwitchable
  }

  private static func isAllowed(_ verdict: ProgramCheck.Verdict, path: String, options: RunOptions) -> Bool {
    let message = "\(path) \(verdict.description)"
    if verdict.isSwitchable {
      if options.verbose { Terminal.printError(message) }
      return true
    }
    if options.children && verdict.canSwitchChildren {
      if options.verbose { Terminal.printError("\(message); switching its children") }
      return true
    }
    if options.force {
      Terminal.printError("warning: \(message); running it anyway (--force)")
      return true
    }
    Terminal.printError(message)
    return false
  }
}

extension Environment {
  /// With the library's settings that the options stand for.
  func configured(by options: RunOptions) -> Environment {
    var result = self
    if let strict = options.strict { result.set("CONCOURSE_STRICT", to: strict) }
    if let pool = options.pool { result.set("CONCOURSE_TASK_THREADS", to: "\(pool)") }
    return result
  }
}

extension LibrarySearch {
  /// Debian's name for this architecture, a part of the paths of its libraries.
  #if arch(arm64)
    static let triplet = "aarch64-linux-gnu"
  #else
    static let triplet = "x86_64-linux-gnu"
  #endif

  /// A search with the paths of this environment.
  init(environment: Environment) {
    libraryPath = (environment.text(of: "LD_LIBRARY_PATH") ?? "").split { $0 == ":" || $0 == ";" }.map(
      String.init)
    cache = LoaderCache(path: "/etc/ld.so.cache")
    let triplet = Self.triplet
    defaults = ["/lib/\(triplet)", "/usr/lib/\(triplet)", "/lib64", "/usr/lib64", "/lib", "/usr/lib"]
  }
}
