#define _GNU_SOURCE

// Debug messages, written to the destination in LIBDISPATCH_LOG. In C because they take variable arguments.

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

extern char *concourse_describe(void *object);

enum { NOWHERE = -1, SYSTEM_LOG = -2 };

// A descriptor, or one of the above.
static int destination;
static pthread_once_t chosen = PTHREAD_ONCE_INIT;

static int open_file(void) {
  char path[64];
  snprintf(path, sizeof path, "/var/tmp/libdispatch.%d.log", (int)getpid());
  // The file name is predictable: another user may have put a link there, a pipe, or a file that others can read.
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  if (file < 0) return SYSTEM_LOG;
  struct stat status;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() && status.st_nlink == 1 &&
      (status.st_mode & 077) == 0)
    return file;
  close(file);
  return SYSTEM_LOG;
}

static void choose(void) {
  const char *name = getenv("LIBDISPATCH_LOG");
  destination = SYSTEM_LOG;
  if (name == NULL) return;
  if (strcmp(name, "NO") == 0) destination = NOWHERE;
  if (strcmp(name, "stderr") == 0) destination = STDERR_FILENO;
  if (strcmp(name, "file") == 0) destination = open_file();
}

static int where(void) {
  pthread_once(&chosen, choose);
  return destination;
}

static void send(const char *line) {
  if (where() == SYSTEM_LOG) return syslog(LOG_USER | LOG_DEBUG, "%s", line);
  // One write per line, so that lines of different threads do not mix.
  char *text = NULL;
  int length = asprintf(&text, "%s\n", line);
  if (length < 0) return;
  for (int written = 0; written < length;) {
    ssize_t count = write(where(), text + written, (size_t)(length - written));
    if (count > 0) {
      written += (int)count;
    } else if (errno != EINTR) {
      break;
    }
  }
  free(text);
}

static bool format_line(char **line, const char *format, va_list arguments) {
  return format != NULL && vasprintf(line, format, arguments) >= 0;
}

EXPORTED void dispatch_debugv(void *object, const char *format, va_list arguments) {
  if (where() == NOWHERE) return;
  char *about = concourse_describe(object), *message = NULL, *line = NULL;
  if (format_line(&message, format, arguments)) {
    if (asprintf(&line, "%s: %s", about ? about : "?", message) >= 0) {
      send(line);
      free(line);
    }
    free(message);
  }
  free(about);
}

EXPORTED void dispatch_debug(void *object, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  dispatch_debugv(object, format, arguments);
  va_end(arguments);
}

EXPORTED __attribute__((format(printf, 1, 2))) void _dispatch_log(const char *format, ...) {
  if (where() == NOWHERE) return;
  va_list arguments;
  va_start(arguments, format);
  char *line = NULL;
  if (format_line(&line, format, arguments)) {
    send(line);
    free(line);
  }
  va_end(arguments);
}

EXPORTED void _dispatch_bug(size_t line, long value) {
  _dispatch_log("Concourse: a fault was reported for line %zu with value 0x%lx", line, (unsigned long)value);
}

// Waits until another thread, which is about to link a node there, has stored it.
EXPORTED void *_dispatch_wait_for_enqueuer(void **link) {
  void *node;
  while ((node = __atomic_load_n(link, __ATOMIC_ACQUIRE)) == NULL) sched_yield();
  return node;
}
