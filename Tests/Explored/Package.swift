// swift-tools-version: 6.2
import PackageDescription

// Explorations in tests, as users write them: on the toolchain's Dispatch, which their processes replace by the exploring
// library. Scripts/exploring runs them.

let package = Package(
  name: "explored-tests",
  dependencies: [.package(name: "concourse", path: "../..")],
  targets: [
    .testTarget(
      name: "ExploredTests", dependencies: [.product(name: "ConcourseTesting", package: "concourse")],
      path: "Tests")
  ],
  swiftLanguageModes: [.v6]
)
