// Locks of files: of a whole file by `flock`, of its parts by `fcntl` and `lockf`.
//
// A call tries the lock, and waits in the schedule while another one has it. Each release and each descriptor that is
// closed lets all that wait try again; so does the end of all else, since a lock may also end in ways that are not seen
// here: by `dup2`, or in another process. Whether the process itself has the lock says whether its threads have stopped
// for good.

#include "exploring.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/// The object of all that wait for a lock, whatever file they wait for.
static const char any_lock;
enum { MOST_DESCRIPTORS = 1024 };

struct explored_attempt {
  /// One of `fcntl`, or 0 for `flock`.
  int command;
  int descriptor;
  /// Of `flock`.
  int operation;
  struct flock *part;
};

static long attempt(const struct explored_attempt *wanted) {
  if (wanted->command) return SYSTEM3(SYS_fcntl, wanted->descriptor, wanted->command, wanted->part);
  return SYSTEM3(SYS_flock, wanted->descriptor, wanted->operation | LOCK_NB, 0);
}

bool explore_is_of_part(const struct explored_attempt *attempt) { return attempt->command != 0; }

static bool is_refused(long result) { return result == -EAGAIN || result == -EACCES; }

bool explore_take_file_lock(struct explored *thread) {
  long result = attempt(thread->attempt);
  if (is_refused(result)) return false;
  thread->is_answered = true;
  thread->answer = result;
  return true;
}

// MARK: Who has it

/// Whether the descriptor has a lock of the kind, as /proc names it.
static bool has_lock(int descriptor, const char *kind) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/self/fdinfo/%d", descriptor);
  explore_read_file(path, text, sizeof text);
  for (const char *line = text; (line = strstr(line, "\nlock:")); line++) {
    const char *end = strchr(line + 1, '\n'), *found = strstr(line, kind);
    if (found && (!end || found < end)) return true;
  }
  return false;
}

bool explore_others_have_file_lock(const struct explored *thread) {
  const struct explored_attempt *wanted = thread->attempt;
  struct stat status, other;
  if (wanted->command) {
    struct flock found = *wanted->part;
    int question = wanted->command == F_SETLK ? F_GETLK : F_OFD_GETLK;
    // A lock that belongs to a process; those of open files have none.
    if (SYSTEM3(SYS_fcntl, wanted->descriptor, question, &found) == 0 && found.l_pid > 0) return found.l_pid != getpid();
  }
  if (fstat(wanted->descriptor, &status) != 0) return true;
  for (int i = 0; i < MOST_DESCRIPTORS; i++) {
    if (i == wanted->descriptor || fstat(i, &other) != 0) continue;
    if (other.st_dev != status.st_dev || other.st_ino != status.st_ino) continue;
    if (has_lock(i, wanted->command ? "OFDLCK" : "FLOCK")) return false;
  }
  return true;
}

void explore_let_try_file_locks(void) { explore_wake(&any_lock, INT32_MAX); }

// MARK: Calls

/// `waits`: until another one has given the lock up. `releases`: it is a release.
static int lock(struct explored *self, const struct explored_attempt *wanted, bool waits, bool releases, const void *place) {
  if (!releases) explore_point(self, OP_FILE_LOCK, &any_lock, place);
  for (;;) {
    // One of them may be about to give it up.
    explore_settle();
    long result = attempt(wanted);
    if (!is_refused(result)) {
      // A lock that is smaller now, or shared, lets others in, too.
      explore_let_try_file_locks();
      if (releases) explore_point(self, OP_FILE_LOCK, &any_lock, place);
      return (int)explore_result(result);
    }
    if (!waits) {
      explore_yield(self, OP_FILE_LOCK, &any_lock, place);
      return (int)explore_result(result);
    }
    self->attempt = wanted;
    self->is_answered = false;
    int ended = explore_wait_file_lock(self, &any_lock, place);
    if (wanted->command) explore_test_cancel(self);
    if (self->is_answered) return (int)explore_result(self->answer);
    if (ended == EINTR && !explore_goes_on(self)) return (int)explore_result(-EINTR);
  }
}

INTERPOSED(int, flock, int descriptor, int operation) {
  struct explored *self = explore_current();
  if (!self) return REAL(flock)(descriptor, operation);
  const struct explored_attempt wanted = {.descriptor = descriptor, .operation = operation};
  return lock(self, &wanted, !(operation & LOCK_NB), (operation & ~LOCK_NB) == LOCK_UN, HERE);
}

static int lock_part(struct explored *self, int descriptor, int command, struct flock *part, const void *place) {
  bool waits = command == F_SETLKW || command == F_OFD_SETLKW;
  const struct explored_attempt wanted = {
      .command = command == F_SETLKW ? F_SETLK : command == F_OFD_SETLKW ? F_OFD_SETLK : command,
      .descriptor = descriptor,
      .part = part,
  };
  return lock(self, &wanted, waits, part->l_type == F_UNLCK, place);
}

static int control(int descriptor, int command, void *argument, const void *place) {
  static int (*real)(int, int, ...);
  bool locks = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
  struct explored *self = locks && argument ? explore_current() : NULL;
  if (self) return lock_part(self, descriptor, command, argument, place);
  if (!real) real = (int (*)(int, int, ...))explore_real("fcntl");
  return real(descriptor, command, argument);
}

// Each command has at most one argument, an integer or an address.
#define CONTROLS(name)                                   \
  EXPORTED int name(int descriptor, int command, ...) {  \
    va_list list;                                        \
    va_start(list, command);                             \
    void *argument = va_arg(list, void *);               \
    va_end(list);                                        \
    return control(descriptor, command, argument, HERE); \
  }
CONTROLS(fcntl)
CONTROLS(fcntl64)

static int lock_from_here(struct explored *self, int descriptor, int command, off_t size, const void *place) {
  struct flock part = {.l_type = command == F_ULOCK ? F_UNLCK : F_WRLCK, .l_whence = SEEK_CUR, .l_len = size};
  switch (command) {
    case F_LOCK: return lock_part(self, descriptor, F_SETLKW, &part, place);
    case F_TLOCK:
    case F_ULOCK: return lock_part(self, descriptor, F_SETLK, &part, place);
    default: errno = EINVAL; return -1;
  }
}

INTERPOSED(int, lockf, int descriptor, int command, off_t size) {
  struct explored *self = command == F_TEST ? NULL : explore_current();
  return self ? lock_from_here(self, descriptor, command, size, HERE) : REAL(lockf)(descriptor, command, size);
}

INTERPOSED(int, lockf64, int descriptor, int command, off64_t size) {
  struct explored *self = command == F_TEST ? NULL : explore_current();
  return self ? lock_from_here(self, descriptor, command, size, HERE) : REAL(lockf64)(descriptor, command, size);
}
