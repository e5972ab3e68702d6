// swift-tools-version: 6.2
import PackageDescription

// Uses Concourse and leaves the choice of the process's runtime to others: without the trait, nothing else runs on it.

let package = Package(
  name: "library-author",
  dependencies: [.package(name: "concourse", path: "../..", traits: [])],
  targets: [
    .executableTarget(
      name: "library-author", dependencies: [.product(name: "Concourse", package: "concourse")],
      path: "Sources")
  ],
  swiftLanguageModes: [.v6]
)
