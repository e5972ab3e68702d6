import Concourse
import Glibc

/// An actor that asks a slow server without leaving its thread: `sleep` stands for a blocking call. All others wait for
/// the actor.
actor Accounts {
  private var balance = 100

  private func audit(_ began: DispatchSemaphore) {
    began.signal()
    sleep(3600)
    balance = 0
  }

  private func deposit(_ amount: Int) { balance += amount }

  static func start() {
    let accounts = Accounts()
    let began = DispatchSemaphore(value: 0)
    Task(name: "auditor") { await accounts.audit(began) }
    DispatchQueue.global().async {
      began.wait()
      for number in 1...5 { Task(name: "customer \(number)") { await accounts.deposit(number) } }
    }
  }
}
