/// Panels of curves over the same steps, each with a scale of its own that begins at 0. The colours are readable on light
/// and dark pages.
struct CurveChart {
  struct Panel {
    let title: String
    let unit: String
    /// Names, and a value for each step where there is one.
    let curves: [(name: String, values: [Double?])]
  }

  let steps: [String]
  /// The order of the colours: the toolchain's, ours, then rivals'.
  let names: [String]
  let panels: [Panel]

  private static let (width, height, columns) = (360.0, 190.0, 2)
  /// Of the curves within a panel.
  private static let (left, top, inner, tall) = (56.0, 34.0, 280.0, 118.0)

  var text: String {
    let rows = (panels.count + Self.columns - 1) / Self.columns
    let bottom = Double(rows) * Self.height + 30
    let legend = names.enumerated().map { index, name in
      """
      <rect class="f\(index)" x="\(short(Self.left + 150 * Double(index)))" y="\(short(bottom - 22))" width="11" height="11"/>
      <text x="\(short(Self.left + 150 * Double(index) + 17))" y="\(short(bottom - 12))">\(name)</text>
      """
    }
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 \(short(bottom))" font-family="sans-serif" font-size="12">
      <style>
        text { fill: #57606a } .axis { stroke: #d0d7de } polyline { fill: none; stroke-width: 2 }
        .c0 { stroke: #8c959f } .c1 { stroke: #e8590c } .c2 { stroke: #1c7ed6 } .c3 { stroke: #0ca678 }
        .f0 { fill: #8c959f } .f1 { fill: #e8590c } .f2 { fill: #1c7ed6 } .f3 { fill: #0ca678 }
        @media (prefers-color-scheme: dark) {
          text { fill: #b1bac4 } .axis { stroke: #444c56 }
          .c0 { stroke: #6e7681 } .c1 { stroke: #ff8a3d } .f0 { fill: #6e7681 } .f1 { fill: #ff8a3d }
        }
      </style>
      \(panels.enumerated().map { panel($0.element, at: $0.offset) }.joined(separator: "\n"))
      \(legend.joined(separator: "\n"))
      </svg>

      """
  }

  private func panel(_ panel: Panel, at index: Int) -> String {
    let x = Double(index % Self.columns) * Self.width + Self.left
    let y = Double(index / Self.columns) * Self.height + Self.top
    let most = panel.curves.flatMap(\.values).compactMap { $0 }.max() ?? 1
    let floor = y + Self.tall
    let ticks = steps.indices.map { step in
      "<text x=\"\(place(x, step))\" y=\"\(short(floor + 16))\" text-anchor=\"middle\">\(steps[step])</text>"
    }
    return """
      <text x="\(short(x))" y="\(short(y - 14))">\(panel.title), \(panel.unit)</text>
      <line class="axis" x1="\(short(x))" y1="\(short(floor))" x2="\(short(x + Self.inner))" y2="\(short(floor))"/>
      <text x="\(short(x - 6))" y="\(short(y + 4))" text-anchor="end">\(short(most))</text>
      <text x="\(short(x - 6))" y="\(short(floor + 4))" text-anchor="end">0</text>
      \((ticks + panel.curves.map { curve($0, x, floor, scale: Self.tall / most) }).joined(separator: "\n"))
      """
  }

  private func curve(
    _ curve: (name: String, values: [Double?]), _ x: Double, _ floor: Double, scale: Double
  ) -> String {
    let colour = names.firstIndex(of: curve.name) ?? 0
    let points = curve.values.enumerated().compactMap { step, value in
      value.map { (place(x, step), short(floor - $0 * scale)) }
    }
    let dots = points.map { "<circle class=\"f\(colour)\" cx=\"\($0)\" cy=\"\($1)\" r=\"3\"/>" }
    let line = points.map { "\($0),\($1)" }.joined(separator: " ")
    return (["<polyline class=\"c\(colour)\" points=\"\(line)\"/>"] + dots).joined(separator: "\n")
  }

  /// Steps have equal distances: each doubles the processors.
  private func place(_ x: Double, _ step: Int) -> String {
    short(x + (steps.count == 1 ? 0.5 : Double(step) / Double(steps.count - 1)) * (Self.inner - 20) + 10)
  }
}
