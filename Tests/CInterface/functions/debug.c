// Descriptions for debugging, sent to standard error.

#include "check.h"

static void with_list(dispatch_object_t object, const char *message, ...) __attribute__((__format__(__printf__, 2, 3)));

static void with_list(dispatch_object_t object, const char *message, ...) {
  va_list list;
  va_start(list, message);
  dispatch_debugv(object, message, list);
  va_end(list);
}

int main(int argc, char **argv) {
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
  dispatch_release(queue);
  dispatch_release(group);
  return finish();
}
