// swift-tools-version: 6.2
import PackageDescription

// Queues across machines. A package of its own, so that Concourse itself depends on no other library.
let package = Package(
  name: "ConcourseCluster",
  products: [
    .library(name: "ConcourseCluster", targets: ["ConcourseCluster"]),
    .executable(name: "concourse-cluster", targets: ["concourse-cluster"]),
  ],
  dependencies: [.package(name: "concourse", path: "..")],
  targets: [
    .systemLibrary(name: "CNATS", pkgConfig: "libnats", providers: [.apt(["libnats-dev", "pkg-config"])]),
    .target(
      name: "ConcourseCluster", dependencies: ["CNATS", .product(name: "Concourse", package: "concourse")],
      exclude: ["NATS/README.md"]),
    .executableTarget(
      name: "cluster-benchmark",
      dependencies: ["CNATS", "ConcourseCluster", .product(name: "Concourse", package: "concourse")]),
    .executableTarget(name: "concourse-cluster", dependencies: ["ConcourseCluster"]),
    .testTarget(name: "ConcourseClusterTests", dependencies: ["ConcourseCluster", "concourse-cluster"]),
  ],
  swiftLanguageModes: [.v6]
)
