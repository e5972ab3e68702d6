// swift-tools-version: 6.2
import PackageDescription

// The rows (Sources/Rows) are compiled twice, through symbolic links: against the toolchain's Dispatch (bench-incumbent)
// and against Concourse (bench-concourse). The driver (bench) starts the programs in turn and compares what they print.

// Set BENCH_INCUMBENT_ONLY=1 to work on a row without building Concourse.
let incumbentOnly = Context.environment["BENCH_INCUMBENT_ONLY"] == "1"

// The rows about the C interface stand beside the Swift rows of their family. The script `run` compiles them.
let rowsInC = [
  "main.c", "Coordination/coordination.c", "Events/events.c", "Objects/objects.c",
  "Submit/submit.c", "Sync/sync.c", "Timers/timers.c",
].map { "Rows/\($0)" }

let package = Package(
  name: "concourse-benchmarks",
  products: [
    .executable(name: "bench", targets: ["bench"]),
    .executable(name: "bench-incumbent", targets: ["bench-incumbent"]),
    .executable(name: "rival-c", targets: ["rival-c"]),
    .executable(name: "echo-load", targets: ["echo-load"]),
    .executable(name: "bench-concurrency", targets: ["bench-concurrency"]),
    .executable(name: "bench-pool", targets: ["bench-pool"]),
    .executable(name: "bench-oversubscribed", targets: ["bench-oversubscribed"]),
    .executable(name: "bench-scaling", targets: ["bench-scaling"]),
    .executable(name: "hello-swift", targets: ["hello-swift"]),
  ],
  targets: [
    // The harness: the measuring loop, programs of rows in C, and what all contestants share.
    .target(name: "CBench"),
    .executableTarget(
      name: "bench", dependencies: ["CBench"],
      resources: [
        .embedInCode("limits.tsv"), .embedInCode("limits-c.tsv"), .embedInCode("limits-concurrency.tsv"),
      ]),
    .executableTarget(name: "bench-incumbent", dependencies: ["CBench"], exclude: rowsInC),
    // Unlike the other rivals, plain C needs only the toolchain, so it is always built.
    .executableTarget(
      name: "rival-c", dependencies: ["CBench"], path: "Sources/Rivals",
      exclude: [
        "README.md", "command.go", "concurrency.go", "concurrency.rs", "rival.cpp", "rival.go", "scaling.cpp",
        "scaling.go",
      ]),
    // The clients of the echo rows, in a process of their own.
    .executableTarget(name: "echo-load", dependencies: ["CBench"]),
    // Finished programs that know nothing of Concourse: the driver starts them on either library.
    .executableTarget(name: "bench-concurrency", dependencies: ["CBench"]),
    // Their rows on a plain pool of threads, through a symbolic link.
    .executableTarget(name: "bench-pool", dependencies: ["CBench"], swiftSettings: [.define("POOL")]),
    .executableTarget(name: "bench-oversubscribed", dependencies: ["CBench"]),
    .executableTarget(name: "bench-scaling", dependencies: ["CBench"]),
    .executableTarget(
      name: "hello-swift", dependencies: ["CBench"], path: "Sources/hello", exclude: ["hello.c"]),
  ],
  swiftLanguageModes: [.v6]
)

if !incumbentOnly {
  // The explicit name keeps the dependency independent of what the clone's folder is called.
  package.dependencies.append(.package(name: "concourse", path: ".."))
  package.products.append(.executable(name: "bench-concourse", targets: ["bench-concourse"]))
  package.targets.append(
    .executableTarget(
      name: "bench-concourse",
      dependencies: ["CBench", .product(name: "Concourse", package: "concourse")],
      exclude: rowsInC,
      swiftSettings: [.define("CONCOURSE")]))
}
