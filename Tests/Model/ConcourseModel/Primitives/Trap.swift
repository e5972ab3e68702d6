/// The runtime's traps, in the model: they end the execution, not the process.
enum Trap {
  static func clientBug(_ code: Int, _ message: String, details: () -> [String] = { [] }) -> Never {
    end(.trap, "BUG IN CLIENT OF DISPATCH: \(message) [C\(code)]")
  }

  static func runtimeBug(_ message: String) -> Never {
    end(.trap, "BUG IN CONCOURSE: \(message)")
  }

  static func outOfMemory(_ message: String) -> Never {
    end(.trap, "out of memory: \(message)")
  }

  /// A fault that the runtime survives; the model only adds it to the trace.
  static func warn(_ message: String) {
    Scheduler.current?.remark(message)
  }

  static func tryToWarn(_ message: String) -> Bool {
    warn(message)
    return true
  }

  private static func end(_ kind: ModelFailure.Kind, _ message: String) -> Never {
    guard let scheduler = Scheduler.current, scheduler.isExecuting else {
      fatalError("outside an execution: \(message)")
    }
    scheduler.fail(kind, message)
  }
}
