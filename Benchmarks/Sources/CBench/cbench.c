#define _GNU_SOURCE
#include "cbench.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

int bench_forbid_huge_pages(void) { return prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }

int bench_core_count(void) {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

int bench_pin_to_core(int index) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return -1;
  int wanted = index % CPU_COUNT(&allowed);
  for (int core = 0; core < CPU_SETSIZE; core++) {
    if (!CPU_ISSET(core, &allowed) || wanted-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return sched_setaffinity(0, sizeof one, &one);
  }
  return -1;
}

char **bench_environment(void) { return environ; }
