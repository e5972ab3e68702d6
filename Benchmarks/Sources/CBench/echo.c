// What the contestants of the echo rows share: a listening socket, and the load that they are put under.
#define _GNU_SOURCE
#include "cbench.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
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

// The program named `name` in the folder of this one.
static int beside(const char *name, char *path, size_t size) {
  ssize_t length = readlink("/proc/self/exe", path, size - 1);
  if (length <= 0) return -1;
  path[length] = 0;
  char *slash = strrchr(path, '/');
  size_t room = size - (size_t)(slash + 1 - path);
  return (size_t)snprintf(slash + 1, room, "%s", name) < room ? 0 : -1;
}

static int read_line(int descriptor, char *line, size_t size) {
  size_t length = 0;
  while (length + 1 < size) {
    ssize_t count = read(descriptor, line + length, size - 1 - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    length += (size_t)count;
  }
  line[length] = 0;
  return 0;
}

int bench_run_echo_load(
    int port, int connections, long trips, int passes, long *nanoseconds, long *bytes) {
  char program[PATH_MAX], words[4][32], line[128];
  if (beside("echo-load", program, sizeof program) != 0) {
    fprintf(stderr, "benchmark failed: cannot find echo-load\n");
    return -1;
  }
  snprintf(words[0], sizeof words[0], "--port=%d", port);
  snprintf(words[1], sizeof words[1], "--connections=%d", connections);
  snprintf(words[2], sizeof words[2], "--round-trips=%ld", trips);
  snprintf(words[3], sizeof words[3], "--passes=%d", passes);
  char *arguments[] = {program, words[0], words[1], words[2], words[3], NULL};

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child;
  int error = posix_spawn(&child, program, &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    fprintf(stderr, "benchmark failed: cannot start %s: %s\n", program, strerror(error));
    close(ends[0]);
    return -1;
  }
  int unread = read_line(ends[0], line, sizeof line), status;
  close(ends[0]);
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  // A load that failed has said why.
  if (unread || status != 0) return -1;
  return sscanf(line, "%ld %ld", nanoseconds, bytes) == 2 ? 0 : -1;
}
