// swift-tools-version: 6.2
import PackageDescription

// The model build: the engine's own sources (symbolic links) over a deterministic scheduler in place of Primitives/. A
// package of its own, since the explorations take five times as long in debug builds: Scripts/model builds it
// optimised.

// CONCOURSE_MODEL_LEDGER builds the ledger of cache lines instead of the explorations (Scripts/model --ledger): objects
// have their real layout.
let isLedger = Context.environment["CONCOURSE_MODEL_LEDGER"] != nil

let package = Package(
  name: "model",
  targets: [
    .target(name: "CConcourse", path: "CConcourse"),
    // Stacks and switches.
    .target(
      name: "CModelContext", path: "CModelContext", cSettings: isLedger ? [.define("LEDGER")] : []),
    .target(
      name: "ConcourseModel", dependencies: ["CModelContext", "CConcourse"], path: "ConcourseModel",
      exclude: [
        "Coordination/README.md", "Park/README.md", "Pool/README.md", "Pool/ROOTS.md", "Pool/MONITOR.md",
        "Pool/SHARDS.md",
        "Queue/README.md", "Queue/Watch/DEADLOCKS.md", "Queue/ProcessQueues+Fork.swift",
        "Queue/Watch/HeldQueues.swift", "Queue/Watch/SleepingTasks.swift", "Node/README.md",
        "Park/Spin.swift", "Pool/CPUQuota.swift", "Pool/CgroupTree.swift", "Pool/Runtime+Process.swift",
        "Pool/Topology+System.swift", "EventLoop/README.md", "EventLoop/EventLoop+Process.swift",
        // Sources: the state machine, user data, timers and descriptors.
        "Source/README.md", "Source/DispatchSource+C.swift", "Source/DispatchSource+FileSystemObject.swift",
        "Source/DispatchSource+MemoryPressure.swift", "Source/DispatchSource+Process.swift",
        "Source/DispatchSource+Signal.swift", "Source/FileGrowth.swift", "Source/FileObservation.swift",
        "Source/InotifyHub.swift", "Source/MemoryGauge.swift", "Source/PressureLevel.swift",
        "Source/ProcessConnector.swift", "Source/ProcessExit.swift",
      ],
      // With the checks of debug builds, such as the order of locks.
      swiftSettings: [.define(isLedger ? "LEDGER" : "DEBUG")]),
    isLedger
      ? .testTarget(
        name: "LedgerTests", dependencies: ["ConcourseModel"], path: "LedgerTests", exclude: ["limits.txt"])
      : .testTarget(
        name: "ConcourseModelTests", dependencies: ["ConcourseModel"], path: "ConcourseModelTests",
        exclude: ["litmus.txt"]),
  ],
  swiftLanguageModes: [.v6]
)
