// A forked child must not have the parent's thread id where Swift's runtime keeps it for its locks. The argument is the
// place of that variable in the library's thread-local storage, in hexadecimal.

#define _GNU_SOURCE
#include <dispatch/dispatch.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int find(struct dl_phdr_info *module, size_t size, void *storage) {
  (void)size;
  if (strstr(module->dlpi_name, "libdispatch") == NULL) return 0;
  *(char **)storage = module->dlpi_tls_data;
  return 1;
}

int main(int count, char **arguments) {
  char *storage = NULL;
  if (count != 2 || dl_iterate_phdr(find, &storage) == 0 || storage == NULL) return 2;
  volatile int *kept = (int *)(storage + strtoul(arguments[1], NULL, 16));
  dispatch_release(dispatch_queue_create("parent", NULL));
  if (*kept != 0 && *kept != gettid()) {
    fprintf(stderr, "not a thread id at this place: %d\n", *kept);
    return 2;
  }
  *kept = gettid();
  pid_t child = fork();
  if (child == 0) _exit(*kept == 0 || *kept == gettid() ? 0 : 1);
  int status;
  if (child < 0 || waitpid(child, &status, 0) != child) return 2;
  if (status != 0) fprintf(stderr, "the child has the parent's id\n");
  return status != 0;
}
