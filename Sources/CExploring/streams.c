// Streams of the C library on descriptors that may block. The library's own read and write with calls that nothing can come
// in front of. `fdopen` makes a stream here that calls `read` and `write`.

#include "exploring.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { MOST_DESCRIPTORS = 1024 };
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
