import CExploring
import ConcourseSchedules
import Glibc
import Testing

@testable import ConcourseTool

/// How runs are started and ended, with programs that do not have the library.
@Suite("ScheduleRunner")
struct ScheduleRunnerTests {
  private static func program(_ script: String) -> ExploredProgram {
    ExploredProgram(
      path: "/bin/sh", arguments: ["sh", "-c", script].map { Array($0.utf8) },
      environment: Environment(entries: [Array("PATH=/usr/bin:/bin".utf8)]))
  }

  @Test("a run has its output and its status, its input is empty, and the shared file is its descriptor 1000")
  func run() throws {
    let script = "read line; echo \"<$line>\"; echo error >&2; head -c 7 /proc/self/fd/1000; exit 3"
    let run = try #require(try ScheduleRunner(Self.program(script), jobs: 1).run(Schedule(seed: 1)))
    let result = run.result
    #expect(result.status == 3 << 8)
    #expect(String(decoding: result.output, as: UTF8.self) == "<>\nerror\nexplore")
    guard case .unusable = result.verdict(hasStepLimit: false) else {
      Issue.record("a run without the library counts")
      return
    }
  }

  @Test("two runs at the same time have folders of their own for temporary files, which end with them")
  func folders() throws {
    let folder = try TemporaryFolder()
    defer { TemporaryFolder.remove(folder.path) }
    var program = Self.program(
      "echo $TMPDIR; cd $TMPDIR && mkdir a a/b && : >a/b/c && chmod 500 a")
    program.environment.set("TMPDIR", to: folder.path)
    let runs = [try ScheduleRun(program, Schedule(seed: 1)), try ScheduleRun(program, Schedule(seed: 1))]
    while !runs.allSatisfy(\.isOver) { usleep(1000) }
    let paths = runs.map { String(decoding: $0.result.output, as: UTF8.self).dropLast() }
    #expect(paths[0] != paths[1] && paths[0].utf8.count == paths[1].utf8.count, "\(paths)")
    #expect(paths.allSatisfy { $0.hasPrefix(folder.path + "/") && access("\($0)/a/b/c", F_OK) == 0 })
    for run in runs { run.end() }
    #expect(paths.allSatisfy { access(String($0), F_OK) != 0 })
    // One that is alone has the same again.
    let third = try ScheduleRun(program, Schedule(seed: 1))
    while !third.isOver { usleep(1000) }
    #expect(String(decoding: third.result.output, as: UTF8.self).dropLast() == paths[0])
  }

  @Test(
    "what the program puts in the place of its TMPDIR is removed, and no link is followed"
  )
  func replacedFolder() throws {
    let folder = try TemporaryFolder()
    defer { TemporaryFolder.remove(folder.path) }
    let kept = try folder.write([1], to: "kept/file")
    let inner = "\(folder.path)/runs"
    try #require(mkdir(inner, 0o700) == 0)
    for script in [
      "rmdir $TMPDIR; ln -s \(folder.path)/kept $TMPDIR",
      "cd $TMPDIR && mkdir a && ln -s \(folder.path)/kept a/link && ln -s ../../kept link",
      "mv $TMPDIR \(folder.path)/moved; : >\(folder.path)/moved/file; : >$TMPDIR",
      "rmdir $TMPDIR; mkdir $TMPDIR; : >$TMPDIR/file; chmod 0 $TMPDIR",
      "rmdir $TMPDIR",
      // A name that is no text, and folders without permissions.
      """
      cd $TMPDIR && : >"$(printf 'a\\377')" && name=b/$(printf 'c\\377') && mkdir b "$name" && : >"$name/d" &&
        chmod 0 "$name" b .
      """,
    ] {
      var program = Self.program(script)
      program.environment.set("TMPDIR", to: inner)
      let run = try ScheduleRun(program, Schedule(seed: 1))
      while !run.isOver { usleep(1000) }
      #expect(run.result.status == 0, "\(script): \(String(decoding: run.result.output, as: UTF8.self))")
      run.end()
      // It is empty.
      #expect(rmdir(inner) == 0, "\(script)")
      try #require(mkdir(inner, 0o700) == 0 || errno == EEXIST)
    }
    #expect(access(kept, F_OK) == 0)
    #expect(access("\(folder.path)/moved/file", F_OK) == 0, "what the program has moved away is its own")
  }

  @Test(
    "what the program mounts in its TMPDIR, or over it, stays",
    .enabled(if: geteuid() == 0, "only root may mount a folder"))
  func mountedFolder() throws {
    let folder = try TemporaryFolder()
    defer { TemporaryFolder.remove(folder.path) }
    let kept = try folder.write([1], to: "kept/inner/file")
    for place in ["", "/a"] {
      var program = Self.program(
        "mkdir $TMPDIR/a; mount --bind \(folder.path)/kept $TMPDIR\(place) || exit 9; echo $TMPDIR")
      program.environment.set("TMPDIR", to: folder.path)
      let run = try ScheduleRun(program, Schedule(seed: 1))
      while !run.isOver { usleep(1000) }
      // A container may allow no mounts.
      if run.result.status == 9 << 8 { return run.end() }
      let path = String(decoding: run.result.output, as: UTF8.self).dropLast()
      run.end()
      #expect(access(kept, F_OK) == 0, "mounted at TMPDIR\(place)")
      #expect(umount(path + place) == 0)
    }
  }

  @Test("a folder for temporary files that an ended process has left behind is emptied and used again")
  func leftFolder() throws {
    let folder = try TemporaryFolder()
    defer { TemporaryFolder.remove(folder.path) }
    func name(_ number: Int) -> String { "\(folder.path)/concourse-000\(number)" }
    // The first two are not of a run.
    try folder.write([1], to: "concourse-0000/file")
    try folder.write([1], to: "concourse-0001")
    try folder.write([1], to: "concourse-0002/inner/file")
    try #require(chmod(name(2), 0o1700) == 0)
    let first = try #require(RunFolder(in: folder.path))
    let second = try #require(RunFolder(in: folder.path))
    #expect(first.path == name(2) && second.path == name(3))
    #expect(access(name(2) + "/inner", F_OK) != 0)
    #expect(access(name(0) + "/file", F_OK) == 0 && access(name(1), F_OK) == 0)
    // A schedule of a test has removed it; the next one has it again.
    try #require(rmdir(first.path) == 0)
    first.clear()
    try folder.write([1], to: "concourse-0002/file")
    first.clear()
    #expect(access(name(2), F_OK) == 0 && access(name(2) + "/file", F_OK) != 0)
    #expect(RunFolder(in: folder.path)?.path == name(4))
    withExtendedLifetime((first, second)) {}
  }

  @Test("what fails only beside other runs is not found")
  func disturbed() throws {
    let folder = try TemporaryFolder()
    defer { TemporaryFolder.remove(folder.path) }
    let outcome = try #require(MemoryLayout<concourse_exploring_header>.offset(of: \.outcome))
    let begin = "printf '\\001' | dd of=/proc/self/fd/1000 bs=1 seek=\(outcome) conv=notrunc 2>/dev/null; "
    var options = ExploreOptions()
    options.schedules = 6
    let lock = "\(folder.path)/lock"
    let script = "mkdir \(lock) || exit 3; sleep 0.2; rmdir \(lock)"
    let sharing = ScheduleRunner(Self.program(begin + script), jobs: 2)
    let exploration = Exploration(options, sharing)
    #expect(try exploration.run { _ in } == nil)
    #expect(exploration.figures.schedules == 6)
    #expect(exploration.figures.disturbed > 0)
    let line = try #require(ExploreText.disturbedLine(exploration.figures))
    #expect(line.contains("--jobs 1"))
    // What fails alone, too, is.
    let failing = ScheduleRunner(Self.program(begin + "exit 3"), jobs: 2)
    #expect(try Exploration(options, failing).run { _ in }?.failure == .status(3))
  }

  /// Runs the script, which knows the number of its schedule, and how often that has run before.
  private static func exploration(
    _ script: String, schedules: Int, in folder: TemporaryFolder
  ) throws -> Exploration {
    let seed = try #require(MemoryLayout<concourse_exploring_header>.offset(of: \.seed))
    let outcome = try #require(MemoryLayout<concourse_exploring_header>.offset(of: \.outcome))
    let leaks = try #require(MemoryLayout<concourse_exploring_header>.offset(of: \.leaks))
    let begin = """
      put() { printf "$1" | dd of=/proc/self/fd/1000 bs=1 seek=$2 conv=notrunc 2>/dev/null; }
      ended() { put "$1" \(outcome); }
      leaks() { put '\\001' \(leaks); }
      ended '\\001'
      number=$(($(od -An -tu8 -j\(seed) -N8 /proc/self/fd/1000) % 1000000))
      cd \(folder.path)
      before=$(ls | grep -c "^$number-")
      : >"$number-$before"

      """
    var options = ExploreOptions()
    options.schedules = schedules
    return Exploration(options, ScheduleRunner(Self.program(begin + script), jobs: 2))
  }

  @Test("a failure counts at once if the program uses something that differs from run to run")
  func leakingFailure() throws {
    let folder = try TemporaryFolder()
    let script = "[ $number != 3 ] || [ $before != 0 ] || { leaks; exit 3; }"
    let exploration = try Self.exploration(script, schedules: 6, in: folder)
    #expect(try exploration.run { _ in }?.failure == .status(3))
    #expect(exploration.figures.disturbed == 0)
  }

  @Test("a repeated schedule that fails only beside others is no difference")
  func disturbedRepeat() throws {
    let folder = try TemporaryFolder()
    let exploration = try Self.exploration(
      "[ $number != 9 ] || [ $before != 1 ] || exit 3", schedules: 12, in: folder)
    #expect(try exploration.run { _ in } == nil)
    #expect(exploration.figures.schedules == 12 && exploration.figures.repeated == 1)
    #expect(exploration.figures.disturbed == 1)
    #expect(exploration.difference == nil)
    // One that fails from then on is found, and is one.
    let other = try TemporaryFolder()
    let failing = try Self.exploration(
      "[ $number != 9 ] || [ $before = 0 ] || exit 3", schedules: 12, in: other)
    #expect(try failing.run { _ in }?.failure == .status(3))
    #expect(failing.difference?.schedule.number == 9)
  }

  @Test("a program that cannot be explored is refused also if another run has failed beside others")
  func disturbedRefusal() throws {
    let folder = try TemporaryFolder()
    let spinning = CONCOURSE_EXPLORING_SPINNING.rawValue
    let script = """
      case $number-$before in
      3-0) echo $$ >id; mv id process; until [ -e 4-0 ]; do sleep 0.01; done; exit 3 ;;
      4-0)
        until [ -e process ]; do sleep 0.01; done
        # Until the end of that run has been taken.
        while kill -0 $(cat process); do sleep 0.01; done
        ended '\\00\(spinning)';
        sleep 10 ;;
      esac
      """
    let exploration = try Self.exploration(script, schedules: 6, in: folder)
    let refusal = try #require(throws: Exploration.Refusal.self) { _ = try exploration.run { _ in } }
    #expect(refusal.reason.hasPrefix("spins"))
    #expect(exploration.figures.disturbed == 1)
  }

  @Test("the first result in the order of schedules is taken, whichever ends first")
  func first() throws {
    // The first run waits until the second one has written a file.
    let folder = try TemporaryFolder()
    defer { TemporaryFolder.remove(folder.path) }
    let seed = try #require(MemoryLayout<concourse_exploring_header>.offset(of: \.seed))
    let script = """
      case $(od -An -tu8 -j\(seed) -N8 /proc/self/fd/1000) in
      *1) until [ -e \(folder.path)/end ]; do :; done ;;
      *) touch \(folder.path)/end ;;
      esac
      """
    let runner = ScheduleRunner(Self.program(script), jobs: 2)
    var ended: [UInt64] = []
    let found = try runner.first(of: [Schedule(seed: 1), Schedule(seed: 2)]) { result in
      ended.append(result.header.seed)
      return true
    }
    // Perhaps both have ended between two looks.
    #expect(ended == [2, 1] || ended == [1])
    #expect(found?.place == 0)
    #expect(found?.result.header.seed == 1)
    #expect(runner.count == 2)
  }

  @Test("a child that the process had before is not ended")
  func olderChild() async {
    await #expect(processExitsWith: .success) {
      var child: pid_t = 0
      let arguments: [UnsafeMutablePointer<CChar>?] = [strdup("sleep"), strdup("60"), nil]
      precondition(posix_spawnp(&child, "sleep", nil, nil, arguments, environ) == 0)
      let runner = ScheduleRunner(Self.program("exit 0"), jobs: 1, adopts: true)
      let run = try runner.run(Schedule(seed: 1))
      precondition(run != nil)
      precondition(waitpid(child, nil, WNOHANG) == 0)
      kill(child, SIGKILL)
      precondition(waitpid(child, nil, 0) == child)
      for argument in arguments { free(argument) }
    }
  }

  @Test("what a program leaves behind in a session of its own is ended after the last run, with its children")
  func orphans() async {
    await #expect(processExitsWith: .success) {
      // The substitution ends once the output is closed, which is in the new session.
      let script = "x=$(setsid sh -c 'exec >/dev/null; sleep 1000 & exec sleep 1000' &)"
      let runner = ScheduleRunner(Self.program(script), jobs: 1, adopts: true)
      let run = try runner.run(Schedule(seed: 1))
      run?.end()
      precondition(!ScheduleRunner.children.isEmpty)
      runner.endOrphans()
      precondition(ScheduleRunner.children.isEmpty)
    }
  }

  @Test("an orphan of another program is not ended")
  func foreignOrphan() async {
    await #expect(processExitsWith: .success) {
      let runner = ScheduleRunner(Self.program("exit 0"), jobs: 1, adopts: true)
      let run = try runner.run(Schedule(seed: 1))
      run?.end()
      var shell: pid_t = 0
      let script = "sleep 1000 </dev/null >/dev/null 2>&1 &"
      let arguments: [UnsafeMutablePointer<CChar>?] = [strdup("sh"), strdup("-c"), strdup(script), nil]
      precondition(posix_spawnp(&shell, "sh", nil, nil, arguments, environ) == 0)
      precondition(waitpid(shell, nil, 0) == shell)
      let orphans = ScheduleRunner.children
      precondition(orphans.count == 1)
      runner.endOrphans()
      precondition(ScheduleRunner.children == orphans)
      kill(orphans[0], SIGKILL)
      precondition(waitpid(orphans[0], nil, 0) == orphans[0])
      for argument in arguments { free(argument) }
    }
  }

  @Test("a command without standard descriptors, which ignores the ends of children, gets what is usual")
  func usualStart() async {
    await #expect(processExitsWith: .success) {
      signal(SIGCHLD, SIG_IGN)
      close(STDIN_FILENO)
      close(STDOUT_FILENO)
      Terminal.makeUsual()
      precondition(fcntl(STDIN_FILENO, F_GETFD) == 0 && fcntl(STDOUT_FILENO, F_GETFD) == 0)
      let run = try ScheduleRunner(Self.program("echo out; exit 3"), jobs: 1).run(Schedule(seed: 1))
      precondition(run?.result.status == 3 << 8 && run?.result.output == Array("out\n".utf8))
    }
  }

  @Test("after its time no further run is begun")
  func until() throws {
    let runner = ScheduleRunner(Self.program("exit 0"), jobs: 2)
    #expect(try runner.first(of: [Schedule(seed: 1)], until: UptimeClock.now) { _ in true }?.place == nil)
    #expect(runner.count == 0)
  }

  @Test("a run that is not waited for is ended with what it has started")
  func end() throws {
    var run: ScheduleRun? = try ScheduleRun(Self.program("sleep 1000 & wait"), Schedule(seed: 1))
    let process = try #require(run?.process)
    #expect(run?.isOver == false)
    run?.end()
    run = nil
    #expect(kill(process, 0) == -1)
    // Its children are of the same group; the kernel may still be ending them.
    var spins = 0
    while kill(-process, 0) == 0 && spins < 10_000 {
      usleep(1000)
      spins += 1
    }
    #expect(kill(-process, 0) == -1)
  }

  @Test(
    "a program that has left its process group is ended too",
    .enabled(if: access("/usr/bin/perl", X_OK) == 0, "needs perl"))
  func left() throws {
    let script = "exec perl -e '$| = 1; setpgrp(0, getpgrp(getppid)) and print \"out\"; sleep 1000'"
    let run = try ScheduleRun(Self.program(script), Schedule(seed: 1))
    var turns = 0
    while run.result.output.isEmpty && turns < 10_000 {
      usleep(1000)
      turns += 1
    }
    let process = run.process
    #expect(getpgid(process) == getpgrp())
    run.end()
    #expect(kill(process, 0) == -1 && errno == ESRCH)
  }

  @Test("numbers that the program has overwritten do no harm, and it cannot take the file's memory away")
  func hostile() throws {
    // Ones in all results; the places of the tables are the command's own.
    let results = try #require(MemoryLayout<concourse_exploring_header>.offset(of: \.culprit))
    let end = MemoryLayout<concourse_exploring_header>.size
    let script = """
      tr '\\000' '\\377' </dev/zero | dd of=/proc/self/fd/1000 bs=1 count=\(end - results) seek=\(results) conv=notrunc 2>/dev/null
      : >/proc/self/fd/1000
      """
    let run = try #require(try ScheduleRunner(Self.program(script), jobs: 1).run(Schedule(seed: 1)))
    let result = run.result
    #expect(result.header.detail == .max, "the program has not written")
    #expect(result.made.count == ExploringFile.mostSwitches)
    #expect(result.threads.count == CONCOURSE_EXPLORING_THREADS)
    #expect(FailurePlaces.culprit(of: run, result).isEmpty)
    let story = FailureStory(result, .deadlock) { $0.map { _ in [] } }
    #expect(story.switches.isEmpty)
  }
}
