// Descriptions for debugging, sent to standard error.

#include "check.h"

#include <fcntl.h>
#include <sys/stat.h>

static void with_list(dispatch_object_t object, const char *message, ...) __attribute__((__format__(__printf__, 2, 3)));

static void with_list(dispatch_object_t object, const char *message, ...) {
  va_list list;
  va_start(list, message);
  dispatch_debugv(object, message, list);
  va_end(list);
}

// The file of LIBDISPATCH_LOG=file has a predictable name. Nothing is written to what another has put there, such as a
// pipe. The process that logs must be the one that has made it, since its number is in the name.
static void name_log(char path[64]) { snprintf(path, 64, "/var/tmp/libdispatch.%d.log", (int)getpid()); }

static int log_to_pipe(const char *program) {
  char path[64], number[16];
  name_log(path);
  unlink(path);
  if (mkfifo(path, 0600) != 0) return 2;
  int end = open(path, O_RDONLY | O_NONBLOCK);
  snprintf(number, sizeof number, "%d", end);
  setenv("LIBDISPATCH_LOG", "file", 1);
  execl("/proc/self/exe", program, "pipe", number, (char *)NULL);
  return 3;
}

static int log_and_look(int end) {
  char path[64], byte;
  name_log(path);
  dispatch_debug(dispatch_get_main_queue(), "message number %d", 43);
  unlink(path);
  return read(end, &byte, 1) == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc == 3) return log_and_look(atoi(argv[2]));
  // The destination is chosen when the library starts.
  if (argc < 2) {
    setenv("LIBDISPATCH_LOG", "stderr", 1);
    execl("/proc/self/exe", argv[0], "again", (char *)NULL);
    abort();
  }
  int ends[2], saved = dup(STDERR_FILENO);
  check_equal(pipe(ends), 0);
  dup2(ends[1], STDERR_FILENO);
  dispatch_queue_t queue = dispatch_queue_create("org.example.described", NULL);
  dispatch_group_t group = dispatch_group_create();
  dispatch_debug(queue, "message number %d", 41);
  with_list((dispatch_object_t){._dg = group}, "message number %d", 42);
  dup2(saved, STDERR_FILENO);
  close(ends[1]);
  char text[8192] = {0};
  size_t length = 0;
  ssize_t count;
  while ((count = read(ends[0], text + length, sizeof text - 1 - length)) > 0) length += (size_t)count;
  check(strstr(text, "message number 41") != NULL);
  check(strstr(text, "message number 42") != NULL);
  check(strstr(text, "org.example.described") != NULL);
  if (on_concourse()) {
    pid_t child = fork();
    if (child == 0) _exit(log_to_pipe(argv[0]));
    int status = 0;
    check_equal(waitpid(child, &status, 0), child);
    check_equal(status, 0);
  }
  dispatch_release(queue);
  dispatch_release(group);
  return finish();
}
