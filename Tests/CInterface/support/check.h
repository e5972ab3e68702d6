// Shared by the C programs: counting checks, waiting for events on other threads, and running misuse in a child
// process. Everything is static, so that each program is one file. No program waits for time to pass: the caller
// ends a program that hangs.

#ifndef CHECK_H
#define CHECK_H

#include <dispatch/dispatch.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define UNUSED __attribute__((__unused__))

#ifdef CONCOURSE_DISPATCH
#include <dispatch/private.h>
#else
#include "undeclared.h"
#endif

// The QoS classes, which the toolchain's headers do not name.
#define USER_INTERACTIVE 0x21
#define USER_INITIATED 0x19
#define NORMAL 0x15
#define UTILITY 0x11
#define BACKGROUND 0x09
#define MAINTENANCE 0x05
#define UNSPECIFIED 0x00

static int checks_done;
static int checks_failed;

// May be called on any thread.
UNUSED static void check_that(bool condition, const char *text, const char *file, int line) {
  __atomic_fetch_add(&checks_done, 1, __ATOMIC_SEQ_CST);
  if (condition) return;
  __atomic_fetch_add(&checks_failed, 1, __ATOMIC_SEQ_CST);
  fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, text);
}

UNUSED static void check_numbers(long long got, long long expected, const char *text, const char *file,
                                 int line) {
  if (got != expected) fprintf(stderr, "%s:%d: %lld, not %lld\n", file, line, got, expected);
  check_that(got == expected, text, file, line);
}

#define check(condition) check_that((condition), #condition, __FILE__, __LINE__)
#define check_equal(got, expected) \
  check_numbers((long long)(got), (long long)(expected), #got " == " #expected, __FILE__, __LINE__)
#define check_text(got, expected) check_that(strcmp((got), (expected)) == 0, #got " is " #expected, __FILE__, __LINE__)

// For `return` from main.
UNUSED static int finish(void) {
  printf("%d checks, %d failed\n", checks_done, checks_failed);
  return checks_failed == 0 ? 0 : 1;
}

// Whether our library was loaded: it has a kind of source that the toolchain's lacks.
UNUSED static bool on_concourse(void) { return dlsym(RTLD_DEFAULT, "_dispatch_source_type_proc") != NULL; }

// --- Waiting ---

// An event that happens once or several times.
typedef struct {
  sem_t happened;
} event;

UNUSED static void event_init(event *e) { sem_init(&e->happened, 0, 0); }

UNUSED static void event_happens(void *e) { sem_post(&((event *)e)->happened); }

UNUSED static void event_wait(event *e) {
  while (sem_wait(&e->happened) != 0) {
  }
}

// Whether it has happened; consumes it.
UNUSED static bool event_has_happened(event *e) { return sem_trywait(&e->happened) == 0; }

UNUSED static void nothing(void *context) { (void)context; }

UNUSED static void wait_in_item(void *e) { event_wait((event *)e); }

UNUSED static void count_up(void *counter) { __atomic_fetch_add((int *)counter, 1, __ATOMIC_SEQ_CST); }

UNUSED static int count_of(const int *counter) { return __atomic_load_n(counter, __ATOMIC_SEQ_CST); }

// Returns when all items of a serial queue have run.
UNUSED static void drain(dispatch_queue_t queue) { dispatch_sync_f(queue, NULL, nothing); }

// --- Fatal misuse ---

// How a misuse may end a process: our library prints the reason and traps, the toolchain's may just crash.
UNUSED static bool is_fatal(int signal_number) {
  return signal_number == SIGILL || signal_number == SIGTRAP || signal_number == SIGABRT ||
         (!on_concourse() && (signal_number == SIGSEGV || signal_number == SIGBUS));
}

// Runs `misuse` in a child process, which must die of it, on any thread, with `words` in its last line. The calling
// process must not have used dispatch before: a child has only the thread that forked.
UNUSED static void check_dies(void (*misuse)(void), const char *words, const char *text, const char *file, int line) {
  int ends[2];
  if (pipe(ends) != 0) abort();
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    alarm(20);
    misuse();
    _exit(0);
  }
  close(ends[1]);
  char said[4096];
  size_t length = 0;
  ssize_t count;
  while (length < sizeof said - 1 && (count = read(ends[0], said + length, sizeof said - 1 - length)) > 0) {
    length += (size_t)count;
  }
  said[length] = 0;
  close(ends[0]);
#ifdef CONCOURSE_EMULATED
  // The emulator adds a line about the signal.
  char *added = strstr(said, "qemu: uncaught target signal");
  if (added) *added = 0;
  length = strlen(said);
#endif
  int status = 0;
  waitpid(child, &status, 0);
  bool died = WIFSIGNALED(status) && is_fatal(WTERMSIG(status));
  if (!died) fprintf(stderr, "%s:%d: ended with status %#x, and said: %s\n", file, line, (unsigned)status, said);
  check_that(died, text, file, line);
  if (!on_concourse()) return;
  static const char beginning[] = "Concourse: BUG IN CLIENT OF DISPATCH: ";
  // After the line about a deadlock there is one for each of its threads.
  const char *end = strchr(said, '\n');
  bool is_one = end == said + length - 1 || (end != NULL && strncmp(end, "\nConcourse:   thread ", 21) == 0);
  bool speaks = strncmp(said, beginning, strlen(beginning)) == 0 && is_one && strstr(said, words) != NULL &&
                end - said > 2 && strncmp(end - 1, "]\n", 2) == 0 && strstr(said, " [C") != NULL;
  if (!speaks) fprintf(stderr, "%s:%d: says: %s\n", file, line, said);
  check_that(speaks, "it prints the reason in one line", file, line);
}

#define dies(misuse) dies_saying(misuse, "")
#define dies_saying(misuse, words) check_dies((misuse), (words), #misuse " dies", __FILE__, __LINE__)

// For a misuse that another thread detects.
UNUSED static void wait_for_death(void) {
  for (;;) pause();
}

#endif
