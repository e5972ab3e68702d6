// Streams of the C library on descriptors that may block. The library's own read and write with calls that nothing can come
// in front of. Those that `fdopen` and `popen` make here call `read` and `write`, and so does `stdin` if it is no file.

#include "exploring.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { MOST_DESCRIPTORS = 1024 };
/// The streams that were made here, by their descriptor, and the process at the other end if `popen` made it.
static struct stream {
  FILE *stream;
  pid_t child;
} streams[MOST_DESCRIPTORS];

static ssize_t read_stream(void *cookie, char *bytes, size_t size) { return read((int)(intptr_t)cookie, bytes, size); }

// The result of a stream's writer is 0 for a failure.
static ssize_t write_stream(void *cookie, const char *bytes, size_t size) {
  ssize_t result = write((int)(intptr_t)cookie, bytes, size);
  return result < 0 ? 0 : result;
}

/// The status of a process that has ended; -1 with errno if it is not known.
static int await_end(pid_t child) {
  int status;
  pid_t found;
  do found = waitpid(child, &status, 0);
  while (found < 0 && errno == EINTR);
  return found < 0 ? -1 : status;
}

static int close_stream(void *cookie) {
  int descriptor = (int)(intptr_t)cookie;
  pid_t child = streams[descriptor].child;
  streams[descriptor] = (struct stream){NULL, 0};
  int result = close(descriptor);
  return child ? await_end(child) : result;
}

/// `mode`: r, w or a.
static FILE *make_stream(int descriptor, char mode, pid_t child) {
  const char simple[2] = {mode, 0};
  FILE *stream = fopencookie((void *)(intptr_t)descriptor, simple,
                             (cookie_io_functions_t){.read = read_stream, .write = write_stream, .close = close_stream});
  if (stream) streams[descriptor] = (struct stream){stream, child};
  return stream;
}

static bool waits(int descriptor) {
  struct stat status;
  return descriptor >= 0 && descriptor < MOST_DESCRIPTORS && fstat(descriptor, &status) == 0 &&
         (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

// A buffer that the program sets later, or its lock, is that of the stream in the variable.
void explore_take_input(void) {
  if (waits(STDIN_FILENO)) stdin = make_stream(STDIN_FILENO, 'r', 0);
}

INTERPOSED(FILE *, fdopen, int descriptor, const char *mode) {
  bool is_ours = explore_current() && waits(descriptor);
  int access = is_ours ? fcntl(descriptor, F_GETFL) & O_ACCMODE : O_RDWR;
  bool fits = access == O_RDWR || (access == O_RDONLY ? mode[0] == 'r' : mode[0] != 'r');
  // With '+', 'm', 'x' or a character set, or if it must fail: as the C library does it.
  if (!is_ours || !fits || (mode[0] != 'r' && mode[0] != 'w' && mode[0] != 'a') || (mode[1] && mode[1] != 'b') ||
      (mode[1] && mode[2]))
    return REAL(fdopen)(descriptor, mode);
  return make_stream(descriptor, mode[0], 0);
}

// A stream of this kind has no descriptor of its own.
static int descriptor_of(const FILE *stream) {
  for (int i = 0; i < MOST_DESCRIPTORS; i++)
    if (streams[i].stream == stream) return i;
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

// The C library's own would take the stream for one of a file. Here the file takes the place of the descriptor.
static FILE *open_again(const char *path, const char *mode, FILE *stream, int descriptor) {
  bool reads = mode[0] == 'r', has_both = strchr(mode, '+');
  if (!path || has_both || (reads ? !__freadable(stream) : !__fwritable(stream))) {
    fclose(stream);
    errno = EINVAL;
    return NULL;
  }
  fflush(stream);
  int flags = reads ? O_RDONLY : O_WRONLY | O_CREAT | (mode[0] == 'a' ? O_APPEND : O_TRUNC);
  int file = open(path, flags | O_CLOEXEC, 0666), failure = errno;
  if (file < 0 || dup2(file, descriptor) < 0) {
    fclose(stream);
    errno = failure;
    return NULL;
  }
  close(file);
  __fpurge(stream);
  clearerr(stream);
  return stream;
}

#define REOPENS(name)                                                                  \
  INTERPOSED(FILE *, name, const char *path, const char *mode, FILE *stream) {         \
    int found = explored_is_on && stream ? descriptor_of(stream) : -1;                 \
    if (found < 0) return REAL(name)(path, mode, stream);                              \
    return open_again(path, mode, stream, found);                                      \
  }
REOPENS(freopen)
REOPENS(freopen64)

// MARK: Shells

/// Starts a shell in which `end` takes the place of the descriptor `place`, if that is not -1. Returns 0 or the errno.
static int start_shell(const char *command, int end, int place, const posix_spawnattr_t *attributes, pid_t *child) {
  char *arguments[] = {"sh", "-c", "--", (char *)command, NULL};
  posix_spawn_file_actions_t actions;
  int failure = posix_spawn_file_actions_init(&actions);
  if (failure != 0) return failure;
  if (place >= 0) failure = posix_spawn_file_actions_adddup2(&actions, end, place);
  // The ends of other such streams are not for this child.
  for (int i = 0; i < MOST_DESCRIPTORS && failure == 0; i++)
    if (streams[i].child && i != place) failure = posix_spawn_file_actions_addclose(&actions, i);
  if (failure == 0) failure = posix_spawn(child, "/bin/sh", &actions, attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  return failure;
}

static FILE *open_shell(const char *command, bool reads, bool closes) {
  int ends[2];
  pid_t child;
  if (pipe2(ends, O_CLOEXEC) != 0) return NULL;
  int own = ends[reads ? 0 : 1], other = ends[reads ? 1 : 0];
  if (own >= MOST_DESCRIPTORS) {
    close(own);
    close(other);
    errno = EMFILE;
    return NULL;
  }
  int failure = start_shell(command, other, reads ? STDOUT_FILENO : STDIN_FILENO, NULL, &child);
  close(other);
  FILE *stream = failure == 0 ? make_stream(own, reads ? 'r' : 'w', child) : NULL;
  if (!stream) {
    close(own);
    if (failure == 0) await_end(child);
    errno = failure ? failure : ENOMEM;
    return NULL;
  }
  if (!closes) fcntl(own, F_SETFD, 0);
  return stream;
}

INTERPOSED(FILE *, popen, const char *command, const char *mode) {
  bool reads = strchr(mode, 'r'), writes = strchr(mode, 'w');
  if (!explore_current() || reads == writes || mode[strspn(mode, "rwe")]) return REAL(popen)(command, mode);
  return open_shell(command, reads, strchr(mode, 'e'));
}

INTERPOSED(int, pclose, FILE *stream) {
  int descriptor = explored_is_on && stream ? descriptor_of(stream) : -1;
  if (descriptor < 0 || !streams[descriptor].child) return REAL(pclose)(stream);
  pid_t child = streams[descriptor].child;
  streams[descriptor].child = 0;
  fclose(stream);
  return await_end(child);
}

// As the standard says: the caller ignores two signals meanwhile, and blocks a third one; the shell does neither.
INTERPOSED(int, system, const char *command) {
  if (!explore_current() || !command) return REAL(system)(command);
  const struct sigaction ignored = {.sa_handler = SIG_IGN};
  struct sigaction interrupt, quit;
  sigset_t chosen, former, defaults;
  sigemptyset(&chosen);
  sigaddset(&chosen, SIGCHLD);
  sigemptyset(&defaults);
  sigaction(SIGINT, &ignored, &interrupt);
  sigaction(SIGQUIT, &ignored, &quit);
  if (interrupt.sa_handler != SIG_IGN) sigaddset(&defaults, SIGINT);
  if (quit.sa_handler != SIG_IGN) sigaddset(&defaults, SIGQUIT);
  pthread_sigmask(SIG_BLOCK, &chosen, &former);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &former);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t child;
  // A shell that cannot be started counts as one that has ended with status 127.
  int status = start_shell(command, -1, -1, &attributes, &child) == 0 ? await_end(child) : 127 << 8;
  posix_spawnattr_destroy(&attributes);
  sigaction(SIGINT, &interrupt, NULL);
  sigaction(SIGQUIT, &quit, NULL);
  pthread_sigmask(SIG_SETMASK, &former, NULL);
  return status;
}
