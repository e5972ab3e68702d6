// swift-tools-version: 6.2
import PackageDescription

// `dupes` is written against Concourse. With DUPES_INCUMBENT=1 in the environment the very same sources
// are built against the Dispatch module of the Swift toolchain instead, so that the two runtimes can be
// compared on the same job; nothing else differs between the builds (see Runtime.swift).
let incumbent = Context.environment["DUPES_INCUMBENT"] == "1"

let package = Package(
  name: "Examples",
  products: [.executable(name: "dupes", targets: ["dupes"])],
  dependencies: incumbent ? [] : [.package(name: "concourse", path: "..")],
  targets: [
    // Everything `dupes` does, as a library, so that tests can drive one stage at a time.
    .target(
      name: "DupesKit",
      dependencies: incumbent ? [] : [.product(name: "Concourse", package: "concourse")],
      swiftSettings: incumbent ? [.define("INCUMBENT")] : []),
    .executableTarget(name: "dupes", dependencies: ["DupesKit"]),
    // Foundation's JSON parser for the tests, in a module of its own: Foundation re-exports the
    // toolchain's Dispatch, whose names clash with those of Concourse.
    .target(name: "JSONOracle", path: "Tests/JSONOracle"),
    .testTarget(name: "dupesTests", dependencies: ["DupesKit", "dupes", "JSONOracle"]),
  ],
  swiftLanguageModes: [.v6]
)
