#define _GNU_SOURCE
#include "cbench.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Fills the buffer by a generator with a fixed seed, so that every contestant reads the same bytes.
static void fill(uint64_t *words, long count, uint64_t *state) {
  for (long index = 0; index < count; index++) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    words[index] = *state;
  }
}

static int write_all(int file, const char *bytes, long count) {
  while (count > 0) {
    ssize_t written = write(file, bytes, (size_t)count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return -1;
    bytes += written;
    count -= written;
  }
  return 0;
}

int bench_make_cached_file(long bytes) {
  const char *folder = getenv("TMPDIR");
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/concourse-benchmark-XXXXXX", folder && *folder ? folder : "/tmp");
  int file = mkostemp(path, O_CLOEXEC);
  if (file < 0) return -1;
  // From here on the file goes whenever the process does, in whatever way.
  unlink(path);
  static uint64_t buffer[1 << 17];
  uint64_t state = 88172645463325252;
  for (long left = bytes; left > 0; left -= (long)sizeof buffer) {
    fill(buffer, sizeof buffer / sizeof *buffer, &state);
    long count = left < (long)sizeof buffer ? left : (long)sizeof buffer;
    if (write_all(file, (const char *)buffer, count) != 0) goto failed;
  }
  // Written back now, or the kernel does it while the row is measured.
  if (fdatasync(file) != 0 || lseek(file, 0, SEEK_SET) != 0) goto failed;
  return file;
failed:;
  int error = errno;
  close(file);
  errno = error;
  return -1;
}
