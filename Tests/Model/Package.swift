// swift-tools-version: 6.2
import PackageDescription

// The model build: the engine's own sources (symbolic links) over a deterministic scheduler in place of Primitives/. A
// package of its own, since the explorations take five times as long in debug builds: Scripts/model builds it
// optimised.

let package = Package(
  name: "model",
  targets: [
    .target(name: "CConcourse", path: "CConcourse"),
    // Stacks and switches.
    .target(name: "CModelContext", path: "CModelContext"),
    .target(
      name: "ConcourseModel", dependencies: ["CModelContext", "CConcourse"], path: "ConcourseModel",
      exclude: [
        "Coordination/README.md", "Park/README.md", "Pool/README.md", "Pool/ROOTS.md", "Pool/MONITOR.md",
        "Queue/README.md", "Queue/DEADLOCKS.md", "Node/README.md",
        "Park/Spin.swift", "Pool/CPUQuota.swift", "Pool/CgroupTree.swift", "Pool/Runtime+Process.swift",
      ],
      // With the checks of debug builds, such as the order of locks.
      swiftSettings: [.define("DEBUG")]),
    .testTarget(
      name: "ConcourseModelTests", dependencies: ["ConcourseModel"], path: "ConcourseModelTests"),
  ],
  swiftLanguageModes: [.v6]
)
