# Shared by the scripts, which source it. Changes the working directory to the root of the repository. Any failing
# command, also one in a pipe, ends the script.

# usage: prints what the head of the script says of it.
script=$(realpath "$0")
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$script"; }

if [ "${1:-}" = --help ]; then
  usage
  exit
fi

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Exit tests crash on purpose; a backtrace of each takes seconds and adds nothing.
export SWIFT_BACKTRACE=enable=no

passed=0
failed=0
# The results of the same tests on the toolchain's Dispatch: shown, not judged.
incumbent_passed=0
incumbent_differs=0
logs=$(mktemp -d)
# The session of each script that runs beside (`beside`).
declare -A besides=()
# Also what runs beside the script ends with it; its commands may have process groups of their own, but no sessions.
trap 'for session in "${besides[@]}"; do pkill --session "$session" || true; done; rm -rf "$logs"' EXIT

# The options of release builds. What is built with others in the same folder is compiled anew.
release_options=(--configuration release -Xswiftc -warnings-as-errors)
# Those of `libdispatch.so`. `Scripts/build` and `Scripts/install` use the same folder, so that the modules are compiled once.
# Leaf functions have no frame pointer, which would take half the time of a retain or a signal: one instruction besides
# its checks.
library_options=(--configuration release --scratch-path .build/for-library
  -Xswiftc -Xcc -Xswiftc -momit-leaf-frame-pointer ${CONCOURSE_BUILD_OPTIONS:-})
# The packages that are compiled once, for their tests and for the scripts that run their programs. `swift test` would add
# -enable-testing for all, in release builds too, and compile anew what `swift build` has compiled.
tests_package=("${release_options[@]}" --package-path Tests --scratch-path .build/whole)
examples_package=("${release_options[@]}" --package-path Examples -Xswiftc -enable-testing)
test_packages=(swift test --disable-testable-imports)

# concourse_version: prints the version of Concourse.
concourse_version() {
  sed -n 's/^#define CONCOURSE_VERSION "\(.*\)"$/\1/p' Sources/CConcourse/concourse_version.h
}

# needed_versions LIBRARY: prints the functions of glibc that a library needs and that have changed since 2.17, with their
# versions. (Packed relocations have a version, too.)
needed_versions() {
  { objdump -T "$1" && objdump -p "$1" | sed -n 's/.* \(GLIBC_ABI_[A-Z_]*\)$/(\1) relocations/p'; } |
    sed -n 's/.*(GLIBC_\([0-9.A-Z_]*\)) *\([^ ]*\)$/\1 \2/p' |
    awk '{ split($1, part, "."); if (part[1] != 2 || part[2] > 17) print $2, "GLIBC_" $1 }' | LC_ALL=C sort -u
}

# watch_tests COMMAND...: runs `swift test` in some form and shows its output; what that says is in `status`, `run_passed`,
# `run_failed` and the file `told`. The run is interrupted after CONCOURSE_TEST_MINUTES: a hang must not look like patience.
# The interrupt is the one signal upon which `swift test` ends its children too.
watch_tests() {
  status=0
  echo "> $*"
  timeout --signal=INT --kill-after=20 "${CONCOURSE_TEST_MINUTES:-30}m" "$@" 2>&1 | tee "$logs/run" || status=$?
  # Our own lines begin at the left, whatever the tests wrote last.
  [ -z "$(tail -c 1 "$logs/run")" ] || echo
  Scripts/test-output "$logs/run" >"$logs/output"
  read -r run_passed run_failed <"$logs/output"
  { echo "$* (exit status $status)" && tail -n +2 "$logs/output"; } >"$logs/told"
}

# run_tests COMMAND...: adds the tests of one `swift test` to `passed` and `failed`. A run that goes wrong in any way (a
# crash, no test at all, an ill ending) counts as a failed test at least.
run_tests() {
  local status run_passed run_failed
  watch_tests "$@"
  if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then echo "> interrupted: took too long"; fi
  if [ "$status" -ne 0 ] && [ "$run_failed" -eq 0 ]; then
    echo "> exit status $status, though no test is known to have failed"
    run_failed=1
  elif [ "$run_passed" -eq 0 ] && [ "$run_failed" -eq 0 ]; then
    echo "> no test ran"
    run_failed=1
  fi
  if [ "$run_failed" -ne 0 ]; then cat "$logs/told" >>"$logs/failures"; fi
  passed=$((passed + run_passed))
  failed=$((failed + run_failed))
}

# record_tests COMMAND...: the same on the toolchain's Dispatch. What goes wrong there, a crash or a hang included, is a
# difference, and no failure of ours; only that no test is found is.
record_tests() {
  local status run_passed run_failed
  watch_tests "$@"
  if [ "$status" -eq 0 ] && [ "$run_passed" -eq 0 ]; then
    echo "> no test ran"
    echo "$* (no test ran)" >>"$logs/failures"
    failed=$((failed + 1))
  fi
  if [ "$status" -ne 0 ] && [ "$run_failed" -eq 0 ]; then run_failed=1; fi
  incumbent_passed=$((incumbent_passed + run_passed))
  incumbent_differs=$((incumbent_differs + run_failed))
  if [ "$run_failed" -ne 0 ]; then cat "$logs/told" >>"$logs/differences"; fi
}

# run_apart COMMAND...: like run_tests, with one process for the engine's tests, one for each conformance suite, and one
# for random programs. The engine's tests make system calls fail in the whole process, and two runtimes in one process
# conflict over signals.
# A command that selects tests runs as it is. Those on the toolchain's Dispatch only run if it names them.
run_apart() {
  case " $* " in
    *ConformanceOnIncumbent*)
      record_tests "$@"
      return
      ;;
    *" --filter "* | *" --skip "*)
      run_tests "$@" --skip ConformanceOnIncumbent
      return
      ;;
  esac
  run_tests "$@" --skip ConformanceOn --skip ProgramsTests
  run_tests "$@" --skip-build --filter ConformanceOnConcourse
  run_tests "$@" --skip-build --filter ProgramsTests
}

# run_script COMMAND...: runs a script of ours, and adds the counts of its last line, "N passed, M failed", if it counts. A
# script that fails without counting a failure is one.
run_script() {
  local log="$logs/script" status=0 failed_before=$failed
  echo "> $*"
  "$@" 2>&1 | tee "$log" || status=$?
  if [[ "$(tail -n 1 "$log")" =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
  fi
  if [ "$status" -eq 0 ]; then return; fi
  if [ "$failed" -eq "$failed_before" ]; then failed=$((failed + 1)); fi
  echo "$* (exit status $status)" >>"$logs/failures"
  # What the script repeats of itself, or else whatever it said last.
  if ! grep '^! ' "$log" >"$logs/repeated"; then tail -n 8 "$log" >"$logs/repeated"; fi
  sed 's/^! //; s/^/  /' "$logs/repeated" >>"$logs/failures"
}

# beside NAME COMMAND...: starts a script of ours beside what follows. `joined NAME` waits for it, shows its output and counts.
beside() {
  echo "> ${*:2} (beside what follows)"
  begin_session "$@"
}

# behind NAME COMMAND...: the same, with what the processors have left: it must have no short limits. The kernel compares
# the priorities of processes only within a session (autogroup), so the session gets the lowest one, too.
behind() {
  echo "> ${*:2} (behind what follows)"
  begin_session "$1" bash -c '{ echo 19 >/proc/self/autogroup; } 2>/dev/null || true; exec nice -n 19 "$@"' - "${@:2}"
}

begin_session() {
  setsid "${@:2}" >"$logs/beside-$1" 2>&1 </dev/null &
  besides[$1]=$!
}

joined() {
  local status=0
  wait "${besides[$1]}" || status=$?
  unset "besides[$1]"
  run_script outcome "$1" "$status"
}

outcome() {
  cat "$logs/beside-$1"
  return "$2"
}

# step NAME COMMAND...: runs a command that counts its tests (`run_script`, `run_tests`), and prints its seconds: those of
# the clock, and those of processors, on which other programs of the machine have less influence. The latter are of all
# commands that have ended meanwhile, also of those that ran beside it.
step() {
  local name=$1 start=$SECONDS used failed_before=$failed verdict=passed
  shift
  processor_seconds
  used=$processors
  echo "== $name"
  "$@"
  [ "$failed" -eq "$failed_before" ] || verdict=failed
  processor_seconds
  echo "== $name $verdict after $((SECONDS - start)) s, $((processors - used)) s of processors"
}

# processor_seconds: sets `processors` to the seconds of processors of all commands of this shell that have ended.
processor_seconds() {
  times >"$logs/times"
  processors=$(awk -F '[ms ]+' 'END { printf "%d", 60 * ($1 + $3) + $2 + $4 }' "$logs/times")
}

# What went wrong once more, then the counts, which are the last line of a script that runs tests, and its
# exit status. The "! " is how `run_script` finds the former.
finish() {
  if [ "$((incumbent_passed + incumbent_differs))" -ne 0 ]; then
    echo "the toolchain's library: $incumbent_passed passed, $incumbent_differs not"
  fi
  if [ -s "$logs/differences" ]; then sed -n "s/^/the toolchain's library differs: /; 1,40p" "$logs/differences"; fi
  if [ -s "$logs/failures" ]; then sed -n 's/^/! /; 1,40p' "$logs/failures"; fi
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}
