// Locks of files, and streams of the C library on descriptors that may block.
//
// A lock of a file that another thread holds through another descriptor is waited for in the schedule. A lock that another
// process holds is waited for in the kernel: what cannot come from this process is no deadlock of it.
//
// The C library's streams read and write with calls of its own. `fdopen` makes a stream that calls `read` and `write` here.

#include "exploring.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

// MARK: Locks

enum { MOST_LOCKS = 64, MOST_DESCRIPTORS = 1024 };
/// The files whose locks this process has, each through a descriptor; a descriptor that was closed has none.
static struct held {
  int descriptor;
  bool is_held;
  dev_t device;
  ino_t file;
} locks[MOST_LOCKS];

static void note(int descriptor, bool is_held) {
  struct stat status;
  struct held *place = NULL;
  // That of the descriptor, or a free one.
  for (int i = 0; i < MOST_LOCKS; i++) {
    if (locks[i].is_held && locks[i].descriptor == descriptor) locks[i].is_held = false;
    if (!locks[i].is_held) place = &locks[i];
  }
  if (is_held && place && fstat(descriptor, &status) == 0) *place = (struct held){descriptor, true, status.st_dev, status.st_ino};
}

/// Whether another descriptor of this process has a lock of the same file.
static bool is_held_here(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return false;
  for (int i = 0; i < MOST_LOCKS; i++)
    if (locks[i].is_held && locks[i].descriptor != descriptor && locks[i].device == status.st_dev &&
        locks[i].file == status.st_ino)
      return true;
  return false;
}

void explore_forget_locks(int descriptor) {
  for (int i = 0; i < MOST_LOCKS; i++) {
    if (!locks[i].is_held || locks[i].descriptor != descriptor) continue;
    locks[i].is_held = false;
    // Those that wait try again, whatever file they wait for.
    explore_wake(locks, INT32_MAX);
  }
}

INTERPOSED(int, flock, int descriptor, int operation) {
  struct explored *self = explore_current();
  if (!self) return REAL(flock)(descriptor, operation);
  int kind = operation & ~LOCK_NB;
  if (kind != LOCK_UN) explore_point(self, OP_FILE_LOCK, locks, HERE);
  for (;;) {
    int result = REAL(flock)(descriptor, operation | LOCK_NB);
    if (result == 0) {
      note(descriptor, kind != LOCK_UN);
      // A lock that is now shared lets others in, too.
      explore_wake(locks, INT32_MAX);
      if (kind == LOCK_UN) explore_point(self, OP_FILE_LOCK, locks, HERE);
      return 0;
    }
    if (errno != EWOULDBLOCK) return result;
    if (operation & LOCK_NB) {
      explore_yield(self, OP_FILE_LOCK, locks, HERE);
      errno = EWOULDBLOCK;
      return result;
    }
    // The kernel gives a lock up before it takes one of the other kind.
    note(descriptor, false);
    if (!is_held_here(descriptor)) return REAL(flock)(descriptor, operation);
    if (explore_wait(self, OP_FILE_LOCK, locks, NEVER, HERE) == EINTR) return (int)explore_result(-EINTR);
  }
}

// MARK: Streams

/// The streams that were made here, by their descriptor.
static FILE *streams[MOST_DESCRIPTORS];

static ssize_t read_stream(void *cookie, char *bytes, size_t size) { return read((int)(intptr_t)cookie, bytes, size); }

// The result of a stream's writer is 0 for a failure.
static ssize_t write_stream(void *cookie, const char *bytes, size_t size) {
  ssize_t result = write((int)(intptr_t)cookie, bytes, size);
  return result < 0 ? 0 : result;
}

static int close_stream(void *cookie) {
  int descriptor = (int)(intptr_t)cookie;
  streams[descriptor] = NULL;
  return close(descriptor);
}

INTERPOSED(FILE *, fdopen, int descriptor, const char *mode) {
  struct stat status;
  bool waits = explore_current() && descriptor >= 0 && descriptor < MOST_DESCRIPTORS &&
               fstat(descriptor, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
  int access = waits ? fcntl(descriptor, F_GETFL) & O_ACCMODE : O_RDWR;
  bool fits = access == O_RDWR || (access == O_RDONLY ? mode[0] == 'r' : mode[0] != 'r');
  // With '+', 'm', 'x' or a character set, or if it must fail: as the C library does it.
  if (!waits || !fits || (mode[0] != 'r' && mode[0] != 'w' && mode[0] != 'a') || (mode[1] && mode[1] != 'b') ||
      (mode[1] && mode[2]))
    return REAL(fdopen)(descriptor, mode);
  const char simple[2] = {mode[0], 0};
  FILE *stream = fopencookie((void *)(intptr_t)descriptor, simple,
                             (cookie_io_functions_t){.read = read_stream, .write = write_stream, .close = close_stream});
  if (stream) streams[descriptor] = stream;
  return stream;
}

// A stream of this kind has no descriptor of its own.
static int descriptor_of(const FILE *stream) {
  for (int i = 0; i < MOST_DESCRIPTORS; i++)
    if (streams[i] == stream) return i;
  return -1;
}

INTERPOSED(int, fileno, FILE *stream) {
  int found = explored_is_on && stream ? descriptor_of(stream) : -1;
  return found >= 0 ? found : REAL(fileno)(stream);
}

INTERPOSED(int, fileno_unlocked, FILE *stream) {
  int found = explored_is_on && stream ? descriptor_of(stream) : -1;
  return found >= 0 ? found : REAL(fileno_unlocked)(stream);
}
