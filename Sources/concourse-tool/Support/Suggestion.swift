/// What the user probably meant by a word that is not known.
enum Suggestion {
  /// The message about a command or an option that does not exist: with the most similar one, if one is similar.
  static func unknown(_ what: String, _ word: String, of known: [String]) -> String {
    // The value of an option is not a part of its name.
    let name = word.prefix { $0 != "=" }
    let distances = known.map { (word: $0, distance: distance(name.utf8.map { $0 }, $0.utf8.map { $0 })) }
    let message = "unknown \(what) '\(word)'"
    guard let best = distances.min(by: { $0.distance < $1.distance }),
      best.distance <= max(1, best.word.count / 3)
    else { return message }
    return message + "; did you mean '\(best.word)'?"
  }

  /// The least number of characters to insert, remove, replace or exchange with a neighbour.
  static func distance(_ first: [UInt8], _ second: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...second.count)
    for row in first.indices {
      var next = [row + 1]
      for column in second.indices {
        let isSame = first[row] == second[column]
        var least = min(last[column + 1] + 1, next[column] + 1, last[column] + (isSame ? 0 : 1))
        if row > 0, column > 0, first[row] == second[column - 1], first[row - 1] == second[column] {
          least = min(least, beforeLast[column - 1] + 1)
        }
        next.append(least)
      }
      (beforeLast, last) = (last, next)
    }
    return last.last!
  }
}
