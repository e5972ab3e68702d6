// What the contestants of the echo and file rows share: the listening socket, the load, and the file that they read.
#define _GNU_SOURCE
#include "cbench.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int bench_listen(int *port) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener < 0) return -1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof address;
  if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 4096) != 0 ||
      getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
    close(listener);
    return -1;
  }
  *port = ntohs(address.sin_port);
  return listener;
}

int bench_accept(int listener) {
  int connection = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  int on = 1;
  if (connection >= 0) setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return connection;
}

// Runs echo-load with these options. Returns how many numbers it printed; -1 if it failed, and printed the reason.
static int run_load(const char *options, long numbers[3]) {
  char folder[PATH_MAX], command[PATH_MAX + 256];
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  if (length <= 0) return -1;
  folder[length] = 0;
  *strrchr(folder, '/') = 0;
  snprintf(command, sizeof command, "exec '%s/echo-load' %s", folder, options);
  FILE *output = popen(command, "re");
  if (!output) return -1;
  int read = fscanf(output, "%ld %ld %ld", &numbers[0], &numbers[1], &numbers[2]);
  return pclose(output) == 0 ? read : -1;
}

int bench_run_echo_load(int port, int connections, long trips, int passes, long *nanoseconds, long *bytes) {
  char options[256];
  long numbers[3];
  snprintf(
      options, sizeof options, "--port=%d --connections=%d --round-trips=%ld --passes=%d", port, connections, trips,
      passes);
  if (run_load(options, numbers) < 2) return -1;
  *nanoseconds = numbers[0];
  *bytes = numbers[1];
  return 0;
}

int bench_run_echo_loads(
    int port, int connections, int processes, long milliseconds, int passes, long *nanoseconds, long *bytes,
    long *trips) {
  char options[256];
  long numbers[3];
  snprintf(
      options, sizeof options, "--port=%d --connections=%d --processes=%d --milliseconds=%ld --passes=%d", port,
      connections, processes, milliseconds, passes);
  if (run_load(options, numbers) != 3) return -1;
  *nanoseconds = numbers[0];
  *bytes = numbers[1];
  *trips = numbers[2];
  return 0;
}

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
  // The kernel frees the file when the process ends, in whatever way.
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
