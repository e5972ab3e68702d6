// swift-tools-version: 6.2
import PackageDescription

// Tests of programs that link Concourse as users do: the whole process then runs on it, with the toolchain's Dispatch,
// Foundation, Swift Concurrency and the test runner. The engine's tests are in the package above, where only their own
// calls run on it.

let package = Package(
  name: "whole-process-tests",
  dependencies: [.package(name: "concourse", path: "..")],
  targets: [
    .testTarget(
      name: "ConcourseTests", dependencies: [.product(name: "Concourse", package: "concourse")],
      path: "ConcourseTests"),

    // The conformance programs once more, compiled against the toolchain's Dispatch module over Concourse.
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

// Under a sanitizer, only these tests run (Scripts/sanitize).
if Context.environment["CONCOURSE_SANITIZER"] != nil {
  package.targets.removeAll { $0.name != "ConcourseTests" }
}
