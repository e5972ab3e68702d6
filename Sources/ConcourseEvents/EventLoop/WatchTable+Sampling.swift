internal import Glibc

// Descriptors that the kernel refuses to watch although they may block: memory or descriptors are short, or a sandbox
// forbids it. They are polled every 10 ms, until the kernel accepts them.

extension WatchTable: TimerOwner {
  /// Nanoseconds between two polls.
  private static let samplingInterval: UInt64 = 10_000_000

  func timerIsDue(_ timer: LoopTimer) { sample() }

  /// Polls the armed watches of a registration that the kernel refuses to watch.
  func sampleInstead(_ registration: FileRegistration, _ failure: Int) {
    // EBADF: the client closed the descriptor before the cancel handler, which is its error. The watches stay silent.
    if failure == -Int(EBADF) { return }
    let isSampling = lock.withLockPatiently { () -> Bool in
      registration.lock.lock()
      defer { registration.lock.unlock() }
      let stranded = registration.detachArmed()
      for watch in stranded { watch.mode = .sampled }
      sampled += stranded
      if !stranded.isEmpty && registration.isEmpty {
        if let poller = EventLoop.shared.pollerIfAny { registration.leaveKernel(poller) }
        retireIfEmpty(registration)
      }
      return !stranded.isEmpty
    }
    guard isSampling else { return }
    Self.reportSampling(Int32(-failure))
    scheduleSampling()
  }

  func scheduleSampling() {
    let timer = lock.withLockPatiently { () -> LoopTimer? in
      // Setting it again would put the poll off, for ever if descriptors keep coming.
      guard !isSamplerSet else { return nil }
      isSamplerSet = true
      let timer = sampler ?? LoopTimer(owner: self)
      sampler = timer
      return timer
    }
    timer?.set(.uptime(Clock.uptime() &+ Self.samplingInterval))
  }

  private func sample() {
    let poller = EventLoop.shared.begin()
    var ready: [FileWatch] = []
    let goOn = lock.withLockPatiently { () -> Bool in
      isSamplerSet = false
      sampled = sampled.filter { watch in
        guard watch.isArmed else { return true }
        // The kernel may accept it by now.
        if poller != nil && join(watch, poller) == 0 {
          watch.mode = .kernel
          return false
        }
        watch.isArmed = true
        let interest = watch.interest.readiness
        let found = System.readiness(of: watch.descriptor, interest.rawValue)
        if found > 0 {
          watch.isArmed = false
          ready.append(watch)
        }
        return true
      }
      return sampled.contains { $0.isArmed }
    }
    for watch in ready { watch.notifyOwner() }
    if goOn { scheduleSampling() }
  }

  private static let samplingReported = Atomic<Bool>(false)

  static func reportSampling(_ failure: Int32) {
    // ORDERING: relaxed; only decides which caller prints.
    guard !samplingReported.exchange(true, ordering: .relaxed) else { return }
    Trap.warn(
      "the system refuses to watch a descriptor (errno \(failure)); it is polled every 10 ms instead")
  }
}
