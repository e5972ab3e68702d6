// swift-tools-version: 6.2
import PackageDescription

// Tests of what links Concourse as users do: the process is then wholly on it, the toolchain's Dispatch,
// Foundation, Swift Concurrency and the tests' own machinery included. The engine's tests are in the package above,
// where nothing but what they call themselves runs on it.

let package = Package(
  name: "whole-process-tests",
  dependencies: [.package(name: "concourse", path: "..")],
  targets: [
    .testTarget(
      name: "ConcourseTests", dependencies: [.product(name: "Concourse", package: "concourse")],
      path: "ConcourseTests"),

    // The conformance programs once more, written against the toolchain's Dispatch, which stands on us here.
    .testTarget(
      name: "ConformanceOnOverlay", dependencies: [.product(name: "Concourse", package: "concourse")],
      path: "ConformanceOnOverlay", swiftSettings: [.define("OVERLAY")]),

    // A program as users write them, with Foundation, actors and our queues side by side.
    .executableTarget(
      name: "whole-process-client", dependencies: [.product(name: "Concourse", package: "concourse")],
      path: "WholeProcessClient"),
    .testTarget(
      name: "WholeProcessTests",
      dependencies: ["whole-process-client", .product(name: "Concourse", package: "concourse")],
      path: "WholeProcess"),
  ],
  swiftLanguageModes: [.v6]
)
