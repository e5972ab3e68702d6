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

enum { MOST_STREAMS = 1024 };
/// The streams that were made here, and the process at the other end if `popen` made it. Two may have one descriptor.
static struct stream {
  FILE *stream;
  int descriptor;
  pid_t child;
} streams[MOST_STREAMS];

/// NULL, if it was not made here; of NULL, an unused one.
static struct stream *find(const FILE *stream) {
  for (int i = 0; i < MOST_STREAMS; i++)
    if (streams[i].stream == stream) return &streams[i];
  return NULL;
}

static struct stream *made_here(const FILE *stream) { return explored_is_on && stream ? find(stream) : NULL; }

static ssize_t read_stream(void *cookie, char *bytes, size_t size) {
  return read(((struct stream *)cookie)->descriptor, bytes, size);
}

// The result of a stream's writer is 0 for a failure.
static ssize_t write_stream(void *cookie, const char *bytes, size_t size) {
  ssize_t result = write(((struct stream *)cookie)->descriptor, bytes, size);
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
  struct stream former = *(struct stream *)cookie;
  *(struct stream *)cookie = (struct stream){NULL, 0, 0};
  int result = close(former.descriptor);
  return former.child ? await_end(former.child) : result;
}

/// `mode`: r, w or a.
static FILE *make_stream(int descriptor, char mode, pid_t child) {
  const char simple[2] = {mode, 0};
  struct stream *place = find(NULL);
  if (!place) {
    errno = EMFILE;
    return NULL;
  }
  FILE *stream = fopencookie(place, simple,
                             (cookie_io_functions_t){.read = read_stream, .write = write_stream, .close = close_stream});
  if (stream) *place = (struct stream){stream, descriptor, child};
  return stream;
}

static bool waits(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
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
INTERPOSED(int, fileno, FILE *stream) {
  const struct stream *found = made_here(stream);
  return found ? found->descriptor : REAL(fileno)(stream);
}

INTERPOSED(int, fileno_unlocked, FILE *stream) {
  const struct stream *found = made_here(stream);
  return found ? found->descriptor : REAL(fileno_unlocked)(stream);
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
    const struct stream *found = made_here(stream);                                    \
    if (!found) return REAL(name)(path, mode, stream);                                 \
    return open_again(path, mode, stream, found->descriptor);                          \
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
  for (int i = 0; i < MOST_STREAMS && failure == 0; i++)
    if (streams[i].child && streams[i].descriptor != place)
      failure = posix_spawn_file_actions_addclose(&actions, streams[i].descriptor);
  if (failure == 0) failure = posix_spawn(child, "/bin/sh", &actions, attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  return failure;
}

static FILE *open_shell(const char *command, bool reads, bool closes) {
  int ends[2];
  pid_t child;
  if (pipe2(ends, O_CLOEXEC) != 0) return NULL;
  int own = ends[reads ? 0 : 1], other = ends[reads ? 1 : 0];
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
  struct stream *found = made_here(stream);
  if (!found || !found->child) return REAL(pclose)(stream);
  pid_t child = found->child;
  found->child = 0;
  fclose(stream);
  return await_end(child);
}

/// What two signals did before the first of the callers of `system` came; the last one restores it.
static struct {
  int callers;
  struct sigaction interrupt, quit;
} ignoring;

// As the standard says: the caller ignores two signals meanwhile, and blocks a third one; the shell does neither.
INTERPOSED(int, system, const char *command) {
  if (!explore_current() || !command) return REAL(system)(command);
  const struct sigaction ignored = {.sa_handler = SIG_IGN};
  sigset_t chosen, former, defaults;
  sigemptyset(&chosen);
  sigaddset(&chosen, SIGCHLD);
  sigemptyset(&defaults);
  if (ignoring.callers++ == 0) {
    sigaction(SIGINT, &ignored, &ignoring.interrupt);
    sigaction(SIGQUIT, &ignored, &ignoring.quit);
  }
  if (ignoring.interrupt.sa_handler != SIG_IGN) sigaddset(&defaults, SIGINT);
  if (ignoring.quit.sa_handler != SIG_IGN) sigaddset(&defaults, SIGQUIT);
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
  if (--ignoring.callers == 0) {
    sigaction(SIGINT, &ignoring.interrupt, NULL);
    sigaction(SIGQUIT, &ignoring.quit, NULL);
  }
  pthread_sigmask(SIG_SETMASK, &former, NULL);
  return status;
}
