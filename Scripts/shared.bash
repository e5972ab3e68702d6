# What the scripts have in common; read by them, not run. Afterwards the working directory is the root of
# the repository, and any failing command, also one inside a pipe, ends the script.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Exit tests crash on purpose; a backtrace of each would take seconds and say nothing new.
export SWIFT_BACKTRACE=enable=no

passed=0
failed=0
# What the toolchain's Dispatch did in the same tests; shown, and no verdict on ours.
incumbent_passed=0
incumbent_differs=0
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# run_tests COMMAND...: runs `swift test` in some form, shows its output, adds to `passed` and `failed`.
# A run that goes wrong in any way (a crash, no test at all, an ill ending) counts as a failed test at least.
# It is interrupted after CONCOURSE_TEST_MINUTES: a hang must not look like patience. The interrupt is the
# one signal upon which `swift test` ends its children too.
run_tests() {
  local log="$logs/run" status=0 run_passed run_failed
  echo "> $*"
  timeout --signal=INT --kill-after=20 "${CONCOURSE_TEST_MINUTES:-20}m" "$@" 2>&1 | tee "$log" || status=$?
  # Our own lines begin at the left, whatever the tests wrote last.
  [ -z "$(tail -c 1 "$log")" ] || echo
  read -r run_passed run_failed < <(count_tests "$log")
  if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then echo "> interrupted: took too long"; fi
  if [ "$status" -ne 0 ] && [ "$run_failed" -eq 0 ]; then
    echo "> exit status $status, though no test is known to have failed"
    run_failed=1
  elif [ "$run_passed" -eq 0 ] && [ "$run_failed" -eq 0 ]; then
    echo "> no test ran"
    run_failed=1
  fi
  if [ "$run_failed" -ne 0 ]; then describe_failure "$log" "$status" "$*" >>"$logs/failures"; fi
  passed=$((passed + run_passed))
  failed=$((failed + run_failed))
}

# record_tests COMMAND...: runs `swift test` in some form on the toolchain's Dispatch, and shows its output. What goes
# wrong there, a crash or a hang included, is a difference, and not a failure of ours; only that no test is found is.
record_tests() {
  local log="$logs/run" status=0 run_passed run_failed
  echo "> $*"
  timeout --signal=INT --kill-after=20 "${CONCOURSE_TEST_MINUTES:-20}m" "$@" 2>&1 | tee "$log" || status=$?
  [ -z "$(tail -c 1 "$log")" ] || echo
  read -r run_passed run_failed < <(count_tests "$log")
  if [ "$status" -eq 0 ] && [ "$run_passed" -eq 0 ]; then
    echo "> no test ran"
    echo "$* (no test ran)" >>"$logs/failures"
    failed=$((failed + 1))
  fi
  if [ "$status" -ne 0 ] && [ "$run_failed" -eq 0 ]; then run_failed=1; fi
  incumbent_passed=$((incumbent_passed + run_passed))
  incumbent_differs=$((incumbent_differs + run_failed))
  if [ "$run_failed" -ne 0 ]; then describe_failure "$log" "$status" "$*" >>"$logs/differences"; fi
}

# describe_failure FILE STATUS COMMAND: prints what the output of one `swift test` says about what went wrong:
# the failed tests with their issues, and of a run that did not come to its end the tests it was at. `finish`
# repeats this, so that the end of a log tells what failed.
describe_failure() {
  echo "$3 (exit status $2)"
  awk '
    function forget(line) {
      sub(/.*Test (case .* to )?/, "", line)
      sub(/ (with [0-9]+ test cases )?(passed after|failed after|skipped).*/, "", line)
      delete running[line]
    }
    / Test run with .* (passed|failed) after / { ended = 1; next }
    / Suite .* (passed|failed) after / || / started\.$/ && / (Suite|run) / { next }
    / Test .* started\.$/ && !/ Test case / {
      line = $0; sub(/.* Test /, "", line); sub(/ started\.$/, "", line); running[line] = ++starts; next
    }
    / recorded an issue/ || / Test .* failed after / || /Test Case .* (failed) \(/ ||
      /^SUMMARY: [A-Za-z]*Sanitizer/ || /(^|: )(fatal )?error: / || /Fatal error: / {
      if (!told[$0]++ && shown++ < 30) print "  " substr($0, 1, 400)
      detail = 4
    }
    / Test .* (passed after|failed after|skipped)/ && !/ Test case / { forget($0) }
    /↳/ && detail-- > 0 { if (!told[$0]++ && shown++ < 30) print "    " substr($0, 1, 400) }
    END {
      if (ended) exit
      print "  not at its end; the tests started last of those without a result:"
      for (name in running) order[running[name]] = name
      for (start = starts; start > 0 && listed < 10; start--) {
        if (start in order) { print "    " order[start]; listed++ }
      }
    }' "$1"
}

# run_apart COMMAND...: the same, in a process for the engine's tests and one for each conformance suite. The engine's
# tests refuse system calls by script, for the whole process, and two runtimes share a process's signals badly.
# A command that selects tests itself is run as it is, without those on the toolchain's Dispatch unless it names them.
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
  run_tests "$@" --skip ConformanceOn
  run_tests "$@" --skip-build --filter ConformanceOnConcourse
  # Under a sanitizer the toolchain's Dispatch is left alone.
  [ -n "${CONCOURSE_SANITIZER:-}" ] || record_tests "$@" --skip-build --filter ConformanceOnIncumbent
}

# run_script COMMAND...: runs a script of ours that ends with the line "N passed, M failed", and adds to those counts.
run_script() {
  local log="$logs/script" status=0 counts
  echo "> $*"
  "$@" 2>&1 | tee "$log" || status=$?
  counts=$(tail -n 1 "$log")
  if [[ "$counts" =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
    if [ "$status" -eq 0 ]; then return; fi
  else
    failed=$((failed + 1))
  fi
  echo "$* (exit status $status)" >>"$logs/failures"
  if ! grep '^! ' "$log" >"$logs/repeated"; then tail -n 8 "$log" >"$logs/repeated"; fi
  sed 's/^! //; s/^/  /' "$logs/repeated" >>"$logs/failures"
}

# count_tests FILE: prints how many tests passed and failed in the output of one `swift test`.
# Swift Testing closes with "Test run with 6 tests in 1 suite passed after …"; the skipped ones are among
# the 6. XCTest, should there be any, tells of each case by itself. A line may begin with what a test has
# written, so nothing is tied to the beginning.
count_tests() {
  awk '
    / Test run with [0-9]+ tests? in [0-9]+ suites? (passed|failed) / {
      sub(/.* Test run with /, ""); total += $1; if (/ failed /) ill = 1; next
    }
    / Test .* failed after [0-9.]+ seconds with [0-9]+ issue/ { failed++; next }
    / Test .* passed after [0-9.]+ seconds/ || / started\.$/ { next }
    / Test .* skipped(: |\.$)/ { skipped++; next }
    /Test Case .* passed \([0-9.]+ seconds\)/ { cases++ }
    /Test Case .* failed \([0-9.]+ seconds\)/ { failedCases++ }
    END {
      if (ill && !failed) failed = 1
      good = total - failed - skipped
      print (good > 0 ? good : 0) + cases, failed + failedCases
    }' "$1"
}

# What went wrong once more, then the counts, which are the last line of a script that runs tests, and its
# exit status. The "! " is how `.ci/run` finds the former in a step's output.
finish() {
  if [ "$((incumbent_passed + incumbent_differs))" -ne 0 ]; then
    echo "the toolchain's library: $incumbent_passed passed, $incumbent_differs not"
  fi
  if [ -s "$logs/differences" ]; then sed -n "s/^/the toolchain's library differs: /; 1,40p" "$logs/differences"; fi
  if [ -s "$logs/failures" ]; then sed -n 's/^/! /; 1,40p' "$logs/failures"; fi
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}
