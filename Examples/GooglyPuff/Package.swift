// swift-tools-version: 6.2
import PackageDescription

// What the examples share, `ExampleSupport` and `TestSupport`, is compiled here too, through symbolic links.
let package = Package(
  name: "GooglyPuff",
  products: [
    .executable(name: "googlypuff", targets: ["googlypuff"]),
    // For `Cluster/Demo`, whose workers search the photos.
    .library(name: "GooglyPuffKit", targets: ["GooglyPuffKit"]),
  ],
  dependencies: [.package(name: "concourse", path: "../..")],
  targets: [
    .target(name: "ExampleSupport", dependencies: [.product(name: "Concourse", package: "concourse")]),
    // Where `pkg-config` knows no OpenCV, SwiftPM says what to install, and googlypuff does so too.
    .systemLibrary(
      name: "GooglyPuffOpenCV", pkgConfig: "opencv4",
      providers: [.apt(["libopencv-dev", "opencv-data", "pkg-config"])]),
    .target(name: "GooglyPuffVision", dependencies: ["GooglyPuffOpenCV"]),
    .target(
      name: "GooglyPuffKit", dependencies: ["ExampleSupport", "GooglyPuffVision"], resources: [.copy("Page")]),
    .executableTarget(name: "googlypuff", dependencies: ["GooglyPuffKit"]),
    .target(name: "TestSupport", path: "Tests/TestSupport"),
    .testTarget(
      name: "GooglyPuffTests", dependencies: ["GooglyPuffKit", "googlypuff", "ExampleSupport", "TestSupport"]),
  ],
  swiftLanguageModes: [.v6],
  cxxLanguageStandard: .cxx17
)
