/// The results as lines: a name a line, an empty line after each set. Further names of a file (hard links,
/// followed symbolic links) come after its first one, each with a tab in front. Names are written byte for
/// byte; since a name may hold a newline, `--null` ends names with NUL instead.
enum TextReport {
  static func bytes(_ sets: [Outcome.DuplicateSet], terminator: UInt8) -> Bytes {
    var output: Bytes = []
    for set in sets {
      for file in set.files {
        for (place, name) in file.names.enumerated() {
          if place > 0 { output.append(UInt8(ascii: "\t")) }
          output += name
          output.append(terminator)
        }
      }
      output.append(terminator)
    }
    return output
  }
}
