import Concourse

/// An actor that computes on the main queue. Nothing else gets a turn there.
@MainActor
enum Thumbnails {
  static func start() {
    Task { makeAll() }
    for number in 1...30 {
      DispatchQueue.main.async { print("tick \(number)") }
    }
  }

  private static func makeAll() {
    var pixels = 0
    while pixels >= 0 { pixels = scale(pixels) }
  }

  @inline(never)
  private static func scale(_ pixels: Int) -> Int { (pixels &* 31 &+ 7) & 0xFFFF }
}
