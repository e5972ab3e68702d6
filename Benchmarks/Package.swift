// swift-tools-version: 6.2
import PackageDescription

// The same benchmark sources (Sources/Rows) are compiled twice, through symbolic links: once against
// the toolchain's Dispatch (bench-incumbent), once against Concourse (bench-concourse). The driver
// (bench) starts the two executables in turn, and beside them plain C at what is mostly the kernel's
// work (rival-c), and compares what they print.

// Set BENCH_INCUMBENT_ONLY=1 to work on a row without building Concourse.
let incumbentOnly = Context.environment["BENCH_INCUMBENT_ONLY"] == "1"

let package = Package(
  name: "concourse-benchmarks",
  products: [
    .executable(name: "bench", targets: ["bench"]),
    .executable(name: "bench-incumbent", targets: ["bench-incumbent"]),
    .executable(name: "rival-c", targets: ["rival-c"]),
    .executable(name: "echo-load", targets: ["echo-load"]),
    .executable(name: "bench-concurrency", targets: ["bench-concurrency"]),
    .executable(name: "bench-oversubscribed", targets: ["bench-oversubscribed"]),
    .executable(name: "hello-swift", targets: ["hello-swift"]),
  ],
  targets: [
    // What Swift cannot say: an opaque no-op, prctl, the environment of the process; and what all
    // contestants share: the load for echo servers, the file to be read.
    .target(name: "CBench"),
    .executableTarget(
      name: "bench", dependencies: ["CBench"],
      resources: [
        .embedInCode("limits.tsv"), .embedInCode("limits-c.tsv"), .embedInCode("limits-concurrency.tsv"),
      ]),
    .executableTarget(name: "bench-incumbent", dependencies: ["CBench"]),
    // Needs no more than the toolchain's own compiler, so unlike the other rivals it is always built.
    .executableTarget(name: "rival-c", dependencies: ["CBench"], path: "Rivals/c"),
    // The clients of the echo rows, in a process of their own.
    .executableTarget(name: "echo-load"),
    // Finished programs that know nothing of Concourse: run-drop-in starts them on either library.
    .executableTarget(name: "bench-concurrency", dependencies: ["CBench"]),
    .executableTarget(name: "bench-oversubscribed", dependencies: ["CBench"]),
    .executableTarget(name: "hello-swift", dependencies: ["CBench"]),
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
      swiftSettings: [.define("CONCOURSE")]))
}
