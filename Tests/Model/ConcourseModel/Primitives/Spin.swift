/// How long the engine spins before it sleeps, in the model: once or twice shows every race that
/// spinning can have, and each further round only multiplies the schedules.
enum Spin {
  static let lockRounds = 1
  static let waitRounds = 1
  static let searchRounds = 1
  static let lingerRounds = 1
}
