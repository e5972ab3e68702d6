// swift-tools-version: 6.2
import PackageDescription

// GooglyPuff as a farm. A package of its own, since it needs OpenCV beside what Cluster needs.
let package = Package(
  name: "GooglyFarm",
  dependencies: [
    .package(name: "concourse", path: "../.."),
    .package(name: "ConcourseCluster", path: ".."),
    .package(name: "GooglyPuff", path: "../../Examples/GooglyPuff"),
  ],
  targets: [
    .executableTarget(
      name: "googlyfarm",
      dependencies: [
        .product(name: "Concourse", package: "concourse"),
        .product(name: "ConcourseCluster", package: "ConcourseCluster"),
        .product(name: "GooglyPuffKit", package: "GooglyPuff"),
      ],
      resources: [.copy("Page")])
  ],
  swiftLanguageModes: [.v6],
  cxxLanguageStandard: .cxx17
)
