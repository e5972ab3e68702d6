/// Rows as pairs of bars: the toolchain's time at full length, that of Concourse in proportion. Colours of middle lightness,
/// which read on light and dark pages alike.
struct Chart {
  let bars: [(words: String, row: RowResult)]

  private static let (left, full, step, height) = (270.0, 360.0, 34.0, 11.0)

  var text: String {
    let bottom = Double(bars.count) * Self.step + 34
    // A slower row may be longer than the toolchain's; all are drawn to one scale.
    let longest = bars.map { 1 / ($0.row.ratio ?? 1) }.reduce(1, max)
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 \(short(bottom))" font-family="sans-serif" font-size="13">
      <style>
        text { fill: #57606a } .theirs { fill: #8c959f } .ours { fill: #e8590c }
        @media (prefers-color-scheme: dark) { text { fill: #b1bac4 } .theirs { fill: #6e7681 } .ours { fill: #ff8a3d } }
      </style>
      \(bars.enumerated().map { pair($0.offset, $0.element, scale: Self.full / longest) }.joined(separator: "\n"))
      <rect class="theirs" x="270" y="\(short(bottom - 20))" width="11" height="11"/>
      <text x="287" y="\(short(bottom - 10))">the toolchain's Dispatch</text>
      <rect class="ours" x="450" y="\(short(bottom - 20))" width="11" height="11"/>
      <text x="467" y="\(short(bottom - 10))">Concourse: less is better</text>
      </svg>

      """
  }

  private func pair(_ index: Int, _ bar: (words: String, row: RowResult), scale: Double) -> String {
    let top = Double(index) * Self.step + 6
    let ratio = bar.row.ratio ?? 1
    let words = bar.words.filter { $0 != "`" }
    let (theirs, ours) = (scale, max(scale / ratio, 1))
    return """
      <text x="\(short(Self.left - 10))" y="\(short(top + 16))" text-anchor="end">\(words)</text>
      <rect class="theirs" x="270" y="\(short(top))" width="\(short(theirs))" height="11"/>
      <rect class="ours" x="270" y="\(short(top + Self.height + 1))" width="\(short(ours))" height="11"/>
      <text x="\(short(Self.left + max(theirs, ours) + 8))" y="\(short(top + 16))">\(fixed(ratio, ratio < 10 ? 2 : 1))×</text>
      """
  }
}
