// Swift's `Mutex` and `compareExchange`, whose fast paths are instructions of the program. `lost`: an increment is lost between
// two locks. `crossed`: two are locked in both orders. `wrong`: a check and an exchange are two steps. `polling`: waits for
// ever for a value behind a lock.
import Dispatch
import Glibc
import Synchronization

final class Account: Sendable {
  let balance = Mutex(0)
  let names = Mutex<[String]>([])
  let holder = Atomic<UInt8>(0)
  let peak = Atomic<Int>(Int.min)
  let isOpen = Atomic<Bool>(true)

  /// Raises the peak as other code does that has no lock.
  func note(_ value: Int) {
    var seen = peak.load(ordering: .relaxed)
    while seen < value {
      (_, seen) = peak.weakCompareExchange(expected: seen, desired: value, ordering: .relaxed)
    }
  }
}

func inThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
  let group = DispatchGroup()
  for number in 0..<count { DispatchQueue.global().async(group: group) { body(number) } }
  group.wait()
}

/// Each value that an exchange returns is used.
func careful() -> Bool {
  let accounts = (0..<3).map { _ in Account() }
  let winners = Mutex(0)
  inThreads(3) { number in
    // A thread that blocks all signals.
    var all = sigset_t()
    var former = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_SETMASK, &all, &former)
    for account in accounts {
      account.balance.withLock { balance in
        balance += number + 1
        account.names.withLock { $0.append("\(number)") }
      }
      account.note(number)
      let taken = account.holder.compareExchange(
        expected: 0, desired: UInt8(number + 1), ordering: .sequentiallyConsistent)
      if taken.exchanged != (taken.original == 0) { exit(4) }
      if taken.exchanged { winners.withLock { $0 += 1 } }
      if account.isOpen.compareExchange(expected: true, desired: false, ordering: .relaxed).exchanged {
        winners.withLock { $0 += 100 }
      }
      _ = account.balance.withLockIfAvailable { $0 += 0 }
    }
    pthread_sigmask(SIG_SETMASK, &former, nil)
  }
  return winners.withLock { $0 } == 303
    && accounts.allSatisfy { account in
      account.balance.withLock { $0 } == 6 && account.names.withLock { $0.count } == 3
        && account.peak.load(ordering: .relaxed) == 2
    }
}

@main enum Program {
  static func main() {
    let first = Account()
    let second = Account()
    switch CommandLine.arguments.dropFirst().first {
    case nil:
      exit(careful() ? 0 : 3)
    case "lost":
      inThreads(2) { _ in
        let value = first.balance.withLock { $0 }
        first.balance.withLock { $0 = value + 1 }
      }
      exit(first.balance.withLock { $0 } == 2 ? 0 : 3)
    case "crossed":
      inThreads(2) { number in
        let (outer, inner) = number == 0 ? (first, second) : (second, first)
        outer.balance.withLock { value in value += inner.balance.withLock { $0 } }
      }
    case "wrong":
      inThreads(2) { _ in
        guard first.isOpen.load(ordering: .acquiring) else { return }
        first.balance.withLock { $0 += 1 }
        _ = first.isOpen.compareExchange(expected: true, desired: false, ordering: .relaxed)
      }
      exit(first.balance.withLock { $0 } == 1 ? 0 : 3)
    default:
      while first.balance.withLock({ $0 }) == 0 {}
    }
  }
}
