// What Swift cannot ask of the system.
#define _GNU_SOURCE
#include "cbench.h"

#include <dlfcn.h>
#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

int bench_forbid_huge_pages(void) { return prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }

void bench_trim_heap(void) { malloc_trim(0); }

int bench_core_count(void) {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

int bench_processors(int *numbers, int capacity) {
  cpu_set_t allowed;
  int count = 0;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  for (int core = 0; core < CPU_SETSIZE && count < capacity; core++)
    if (CPU_ISSET(core, &allowed)) numbers[count++] = core;
  return count;
}

int bench_run_on(const int *numbers, int count) {
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (int index = 0; index < count; index++) CPU_SET(numbers[index], &wanted);
  return sched_setaffinity(0, sizeof wanted, &wanted);
}

void bench_raise_descriptor_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void bench_stay_busy(unsigned seconds) {
  alarm(seconds);
  pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  // The parent may have ended before the request.
  for (long round = 0; round % (1 << 20) != 0 || getppid() == parent; round++) bench_opaque(round);
  _exit(0);
}

// Prints `path`, in its canonical form, unless it was printed before.
static void print_once(const char *path) {
  static char printed[8][PATH_MAX];
  static int count;
  char canonical[PATH_MAX];
  if (realpath(path, canonical) == NULL || count == 8) return;
  for (int index = 0; index < count; index++)
    if (strcmp(printed[index], canonical) == 0) return;
  strcpy(printed[count++], canonical);
  puts(canonical);
}

int bench_print_dispatch_libraries(void) {
  // The library that answers calls, whatever its file is called ...
  Dl_info info;
  void *function = dlsym(RTLD_DEFAULT, "dispatch_async_f");
  if (function != NULL && dladdr(function, &info) != 0) print_once(info.dli_fname);
  // ... and any other that is mapped.
  FILE *maps = fopen("/proc/self/maps", "re");
  if (maps == NULL) return 70;
  char line[PATH_MAX + 128];
  while (fgets(line, sizeof line, maps) != NULL) {
    line[strcspn(line, "\n")] = 0;
    char *path = strchr(line, '/');
    if (path != NULL && strncmp(strrchr(path, '/'), "/libdispatch", 12) == 0) print_once(path);
  }
  fclose(maps);
  return 0;
}
