// swift-tools-version: 6.2
import PackageDescription

// A library that has Concourse's types in its public interface, beside Foundation's, and leaves the choice of the
// process's runtime to others: without the trait, nothing else runs on Concourse. Scripts/whole-process builds it from
// Concourse at a version.

let package = Package(
  name: "library-author",
  products: [.library(name: "Journal", targets: ["Journal"])],
  dependencies: [.package(name: "concourse", path: "../..", traits: [])],
  targets: [
    .target(
      name: "Journal",
      dependencies: [
        .product(name: "Concourse", package: "concourse"),
        .product(name: "ConcourseFoundation", package: "concourse"),
      ],
      swiftSettings: [.treatAllWarnings(as: .error)]),
    .executableTarget(name: "library-author", dependencies: ["Journal"], path: "Sources/author"),
  ],
  swiftLanguageModes: [.v6]
)
