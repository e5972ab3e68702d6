// A test process that makes a child for each schedule. The process of `swift test` starts it with the test program's own
// file, and the exploring library in front; the arguments name one test. It has one thread, and does not use the engine:
// either it stays before `main`, or it runs the test up to the exploration, with Swift's jobs on its only thread. The
// children go on from there.

#ifndef CONCOURSE_TESTING_H
#define CONCOURSE_TESTING_H

#include "../../CExploring/include/concourse_exploring.h"

/// The variable of the environment that makes a test process such a server. Its value is
/// CONCOURSE_TESTING_EARLY or CONCOURSE_TESTING_LATE, and the exploration's name.
#define CONCOURSE_TESTING_VARIABLE "CONCOURSE_EXPLORING_TEST"

enum {
  /// The children go on before `main`.
  CONCOURSE_TESTING_EARLY = 'e',
  /// The children go on where the test calls `concourse_testing_serve`.
  CONCOURSE_TESTING_LATE = 'l',
};

/// The server's descriptors: a socket, the file that the runs share with the process that asks, and the runs' output.
enum { CONCOURSE_TESTING_SOCKET = 200, CONCOURSE_TESTING_FILE = 201, CONCOURSE_TESTING_OUTPUT = 202 };

/// The first byte that the server sends. After CONCOURSE_TESTING_READY come 8 bytes: where the program lies. Then each byte
/// that the server gets asks for a run, and it sends the run's status, of `waitpid`.
enum {
  CONCOURSE_TESTING_READY = 1,
  /// The exploring library was not loaded.
  CONCOURSE_TESTING_WITHOUT_LIBRARY = 2,
  /// The test program's own Dispatch comes before the library's.
  CONCOURSE_TESTING_OTHER_DISPATCH = 3,
  /// The library is of another version.
  CONCOURSE_TESTING_OTHER_VERSION = 4,
  /// The test has made threads before it came to the exploration.
  CONCOURSE_TESTING_HAS_THREADS = 5,
};

/// The exploration that this process serves; null in an ordinary process.
const char *_Nullable concourse_testing_name(void);
/// Returns in the children, each of which runs a schedule; at once in a child.
void concourse_testing_serve(void);
/// The schedule's switches begin here.
void concourse_testing_explore(void);
/// In a schedule, waits until no other thread can go on before time passes. Returns 0 elsewhere.
int concourse_testing_await_idleness(void);
/// Ends the process at once, with what it has printed.
_Noreturn void concourse_testing_exit(int status);

/// Until it is undone, processes that the calling thread starts have their memory at the same addresses each time. Returns
/// what undoes it.
int concourse_testing_fix_addresses(void);
void concourse_testing_leave_addresses(int former);

/// Restricts a process to the processor of the calling thread, which is about to wait for it. Only one thread of a run runs
/// at a time, and to wake one on another processor takes longer.
void concourse_testing_move_here(int process);

#endif
