// swift-tools-version: 6.2
import PackageDescription

// One runtime: CConcourse (what Swift cannot say), ConcourseRuntime (queues and their pool), ConcourseEvents (sources,
// data and I/O), ConcourseABI (the C interface over them) and Concourse (the module users import). DESIGN.md is the map.

// The command's code: it would link the modules that every file imports unasked for, and with them libdispatch.so.
let noImplicitImports: [SwiftSetting] = [
  .unsafeFlags([
    "-Xfrontend", "-disable-implicit-concurrency-module-import",
    "-Xfrontend", "-disable-implicit-string-processing-module-import",
  ])
]

let package = Package(
  name: "concourse",
  products: [
    .library(name: "Concourse", targets: ["Concourse"]),
    .library(name: "ConcourseFoundation", targets: ["ConcourseFoundation"]),
    // The drop-in `libdispatch.so`; Scripts/library builds it as it is meant to be used.
    .library(name: "dispatch", type: .dynamic, targets: ["ConcourseABI", "CConcoursePreload"]),
    .library(name: "ConcourseTesting", targets: ["ConcourseTesting"]),
    .executable(name: "concourse", targets: ["ConcourseTool"]),
    .plugin(name: "ConcourseNames", targets: ["ConcourseNames"]),
  ],
  traits: [
    .default(enabledTraits: ["WholeProcess"]),
    .trait(
      name: "WholeProcess",
      description:
        "Programs that link Concourse define the C interface too, so that Foundation and Swift Concurrency run on it."
    ),
  ],
  targets: [
    .target(name: "CConcourse"),
    .target(
      name: "ConcourseRuntime", dependencies: ["CConcourse"],
      exclude: [
        "Coordination/README.md", "Park/README.md", "Primitives/README.md", "Primitives/FORK.md",
        "Queue/README.md", "Queue/Watch/DEADLOCKS.md", "Node/README.md", "Recording/README.md",
        "Pool/README.md",
        "Pool/ROOTS.md", "Pool/SHARDS.md",
        "Pool/MONITOR.md",
      ]),
    // Its idle workers wait for events through the protocol `EventDriver`, which this module implements.
    .target(
      name: "ConcourseEvents", dependencies: ["ConcourseRuntime", "CConcourse"],
      exclude: ["Data/README.md", "EventLoop/README.md", "IO/README.md", "Source/README.md"]),
    // The format of recordings, and what is counted in them: for the process itself, and for the command, which must not
    // link the engine.
    .target(name: "ConcourseRecording", swiftSettings: noImplicitImports),
    // What a process learns of its own queues: snapshots, and statistics made of what it records.
    .target(
      name: "ConcourseInspection",
      dependencies: ["ConcourseEvents", "ConcourseRecording", "ConcourseRuntime"], exclude: ["README.md"]),
    .target(
      name: "Concourse",
      dependencies: [
        "ConcourseInspection", .target(name: "ConcourseABI", condition: .when(traits: ["WholeProcess"])),
      ], exclude: ["README.md", "interface.txt"]),

    // `DispatchData` as Foundation's `DataProtocol`: apart, so that the rest stays free of Foundation.
    .target(name: "ConcourseFoundation", dependencies: ["ConcourseEvents"]),

    // The C interface: `@c` functions over the same engine, and its data symbols.
    .target(name: "CConcourseABI"),
    .target(
      name: "ConcourseABI", dependencies: ["ConcourseInspection", "CConcourseABI"], exclude: ["README.md"],
      linkerSettings: [.linkedLibrary("BlocksRuntime")]),

    // Only for the shared library: it takes itself out of LD_PRELOAD.
    .target(name: "CConcoursePreload"),

    .systemLibrary(name: "CExtendedAttributes"),
    .systemLibrary(name: "CTracing"),
    // What the command and the exploring library agree on. Scripts/library compiles the library's own files beside it.
    .systemLibrary(name: "CExploring", path: "Sources/CExploring/include"),

    // Schedules, their tokens, shrinking, and the file that a run shares with the exploring library: for the command and
    // for tests.
    .target(
      name: "ConcourseSchedules", dependencies: ["CExploring", "CTracing"], swiftSettings: noImplicitImports),

    // Explorations in tests. Its processes load the exploring library; it links no engine.
    .target(name: "CConcourseTesting"),
    .target(
      name: "ConcourseTesting",
      dependencies: ["CConcourseTesting", "CExploring", "ConcourseSchedules", "CTracing"],
      exclude: ["README.md"]),

    // The `concourse` command.
    .executableTarget(
      name: "ConcourseTool",
      dependencies: [
        "CExploring", "CExtendedAttributes", "ConcourseRecording", "ConcourseSchedules", "CTracing",
      ],
      path: "Sources/concourse-tool",
      exclude: ["README.md", "Explore/README.md", "Top/README.md"],
      resources: ["trace.html", "panel.js", "trace.js"].map { .embedInCode("Trace/\($0)") },
      swiftSettings: noImplicitImports),

    // For modules that import Foundation too, whose Dispatch has the same names: one file of aliases.
    .executableTarget(name: "concourse-names"),
    .plugin(name: "ConcourseNames", capability: .buildTool(), dependencies: ["concourse-names"]),

    // Unit, stress and crash tests of ConcourseRuntime and ConcourseEvents; their folders mirror those of Sources.
    .testTarget(name: "ConcourseRuntimeTests", dependencies: ["ConcourseInspection"]),

    .testTarget(name: "ConcourseNamesTests", dependencies: ["concourse-names"]),

    .testTarget(
      name: "ConcourseToolTests",
      dependencies: [
        "ConcourseTool", "CExploring", "CExtendedAttributes", "ConcourseEvents", "ConcourseRecording",
        "ConcourseSchedules",
      ],
      exclude: ["Probe"]),
    // Programs that these tests examine. The tests do not depend on them, since that would link them in.
    .executableTarget(name: "report-probe", dependencies: ["Concourse"], path: "Tests/ReportProbe"),
    .executableTarget(
      name: "broken-programs", dependencies: ["Concourse"], path: "Examples/Sources/broken",
      exclude: ["README.md"]),

    // Programs of tasks that block their threads, and of some that do not.
    .executableTarget(
      name: "task-programs", dependencies: ["Concourse", "ConcourseRuntime"], path: "Tests/TaskPrograms"),

    // One program, two runtimes: both targets compile the very same folder (a symbolic link), once
    // against the engine and once against the toolchain's Dispatch. No test here links Concourse itself,
    // which would put the toolchain's Dispatch onto it; Tests/Package.swift is the package that does.
    .testTarget(
      name: "ConformanceOnConcourse", dependencies: ["ConcourseEvents", "ConcourseFoundation"],
      path: "Tests/ConformanceOnConcourse", swiftSettings: [.define("CONCOURSE")]),
    .testTarget(name: "ConformanceOnIncumbent", path: "Tests/ConformanceOnIncumbent"),

    // Random programs, judged by a reference model of the contract: one folder, two runtimes, as above.
    .executableTarget(
      name: "programs-on-concourse", dependencies: ["ConcourseEvents", "ConcourseRuntime"],
      path: "Tests/ProgramsOnConcourse", exclude: ["Programs/README.md"],
      swiftSettings: [.define("CONCOURSE")]),
    .executableTarget(
      name: "programs-on-incumbent", path: "Tests/ProgramsOnIncumbent", exclude: ["Programs/README.md"]),
    .testTarget(name: "ProgramsTests", dependencies: ["programs-on-concourse"]),

    // Programs with bugs for `concourse explore`, on the toolchain's Dispatch as users build them.
    .executableTarget(name: "explore-programs", path: "Tests/Explore", exclude: ["README.md"]),
  ],
  swiftLanguageModes: [.v6]
)

// The engine and its tests alone: `Scripts/sanitize --engine` compiles nothing else.
if Context.environment["CONCOURSE_ENGINE_ONLY"] == "1" {
  let engine: Set = [
    "CConcourse", "ConcourseRuntime", "ConcourseEvents", "ConcourseRecording", "ConcourseInspection",
    "ConcourseFoundation", "ConcourseRuntimeTests", "ConformanceOnConcourse", "programs-on-concourse",
    "ProgramsTests",
  ]
  package.products = []
  package.targets.removeAll { !engine.contains($0.name) }
}
