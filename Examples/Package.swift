// swift-tools-version: 6.2
import PackageDescription

// The examples are written against Concourse. With EXAMPLES_INCUMBENT=1 in the environment the very same
// sources are built against the Dispatch module of the Swift toolchain instead, so that the two runtimes
// can be compared on the same job; nothing else differs between the builds (see ExampleSupport/Program.swift).
let incumbent = Context.environment["EXAMPLES_INCUMBENT"] == "1"
let runtime: [Target.Dependency] = incumbent ? [] : [.product(name: "Concourse", package: "concourse")]
let settings: [SwiftSetting] = incumbent ? [.define("INCUMBENT")] : []

// `tail-many` needs file-system-object sources, which the toolchain's Dispatch does not have on Linux, and
// `guide` labels of the current queue and a main thread that keeps the main queue.
let concourseOnly: [Target] = [
  .executableTarget(name: "tail-many", dependencies: ["ExampleSupport"]),
  .testTarget(name: "tailManyTests", dependencies: ["tail-many", "ExampleSupport", "TestSupport"]),
  .executableTarget(name: "guide", dependencies: runtime + ["ExampleSupport"]),
  .testTarget(name: "guideTests", dependencies: ["guide", "ExampleSupport", "TestSupport"]),
  // Actors and tasks on queues. It imports Foundation too, so a plugin says whose names are meant.
  .executableTarget(
    name: "tally", dependencies: runtime,
    plugins: [.plugin(name: "ConcourseNames", package: "concourse")]),
  .testTarget(name: "tallyTests", dependencies: ["tally"]),
  // Statistics of the process itself, for a scraper.
  .executableTarget(name: "metrics", dependencies: ["ExampleSupport"]),
  .testTarget(name: "metricsTests", dependencies: ["metrics", "ExampleSupport", "TestSupport"]),
  // Tested in the package above, with the command that finds what is wrong with them.
  .executableTarget(name: "broken", dependencies: runtime, exclude: ["README.md"]),
]

let package = Package(
  name: "Examples",
  products: [
    .executable(name: "dupes", targets: ["dupes"]),
    .executable(name: "echo-server", targets: ["echo-server"]),
  ]
    + (incumbent
      ? []
      : [
        .executable(name: "tail-many", targets: ["tail-many"]),
        .executable(name: "guide", targets: ["guide"]),
        .executable(name: "tally", targets: ["tally"]),
        .executable(name: "metrics", targets: ["metrics"]),
        .executable(name: "broken", targets: ["broken"]),
      ]),
  dependencies: incumbent ? [] : [.package(name: "concourse", path: "..")],
  targets: [
    // What the examples share: command lines, output, signals, sockets.
    .target(name: "ExampleSupport", dependencies: runtime, swiftSettings: settings),
    // Its tests' part: running a built program, files for it.
    .target(name: "TestSupport", path: "Tests/TestSupport"),
    .testTarget(name: "ExampleSupportTests", dependencies: ["ExampleSupport"]),
    .executableTarget(name: "dupes", dependencies: ["ExampleSupport"]),
    .testTarget(name: "dupesTests", dependencies: ["dupes", "ExampleSupport", "TestSupport"]),
    .executableTarget(name: "echo-server", dependencies: ["ExampleSupport"]),
    .testTarget(name: "echoServerTests", dependencies: ["echo-server", "ExampleSupport", "TestSupport"]),
  ] + (incumbent ? [] : concourseOnly),
  swiftLanguageModes: [.v6]
)
