// What differs from machine to machine and from run to run: the number of processors, and what is random.

#include "exploring.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define CALLER __builtin_return_address(0)
enum { PROCESSORS = 4 };
bool explored_is_fixed;

INTERPOSED(long, sysconf, int name) {
  bool counts = name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF;
  return explored_is_fixed && counts ? PROCESSORS : REAL(sysconf)(name);
}

INTERPOSED(int, get_nprocs, void) { return explored_is_fixed ? PROCESSORS : REAL(get_nprocs)(); }
INTERPOSED(int, get_nprocs_conf, void) { return explored_is_fixed ? PROCESSORS : REAL(get_nprocs_conf)(); }

INTERPOSED(int, sched_getcpu, void) { return explored_is_fixed ? 0 : REAL(sched_getcpu)(); }

INTERPOSED(int, sched_getaffinity, pid_t thread, size_t size, cpu_set_t *set) {
  if (!explored_is_fixed) return REAL(sched_getaffinity)(thread, size, set);
  memset(set, 0, size);
  for (int i = 0; i < PROCESSORS; i++) CPU_SET_S(i, size, set);
  return 0;
}

INTERPOSED(int, sched_setaffinity, pid_t thread, size_t size, const cpu_set_t *set) {
  return explored_is_fixed ? 0 : REAL(sched_setaffinity)(thread, size, set);
}

// MARK: What the program itself asks, and other runs may answer otherwise

EXPORTED pid_t getpid(void) {
  if (explored_is_on && explore_is_program(CALLER)) explored_file->leaks |= CONCOURSE_EXPLORING_LEAK_PROCESS_ID;
  return (pid_t)SYSTEM1(SYS_getpid, 0);
}

INTERPOSED(struct dirent *, readdir, DIR *folder) {
  if (explored_is_on && explore_is_program(CALLER)) explored_file->leaks |= CONCOURSE_EXPLORING_LEAK_DIRECTORY_ORDER;
  return REAL(readdir)(folder);
}

// MARK: Random numbers

INTERPOSED(ssize_t, getrandom, void *into, size_t size, unsigned flags) {
  if (!explore_current()) return REAL(getrandom)(into, size, flags);
  explore_fill_random(into, size);
  return (ssize_t)size;
}

INTERPOSED(int, getentropy, void *into, size_t size) {
  if (!explore_current()) return REAL(getentropy)(into, size);
  explore_fill_random(into, size);
  return 0;
}

// glibc 2.36 and later.
EXPORTED void arc4random_buf(void *into, size_t size) {
  static void (*real)(void *, size_t);
  if (explore_current()) return explore_fill_random(into, size);
  if (!real) real = (void (*)(void *, size_t))explore_real("arc4random_buf");
  if (real) return real(into, size);
  for (size_t done = 0; done < size;) {
    long count = SYSTEM3(SYS_getrandom, (char *)into + done, size - done, 0);
    if (count > 0) done += (size_t)count;
  }
}

EXPORTED uint32_t arc4random(void) {
  uint32_t word;
  arc4random_buf(&word, sizeof word);
  return word;
}

EXPORTED uint32_t arc4random_uniform(uint32_t limit) {
  if (limit < 2) return 0;
  // The numbers that would come once more often than others are left out.
  uint32_t least = -limit % limit, word;
  do word = arc4random();
  while (word < least);
  return word % limit;
}

// The numbers of descriptors are used again, by `fclose` and `dup2` for example, so they are not remembered.
bool explore_is_random(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISCHR(status.st_mode)) return false;
  // Linux's numbers of /dev/random and /dev/urandom.
  return status.st_rdev == makedev(1, 8) || status.st_rdev == makedev(1, 9);
}

/// Files that say what the engine must not know: how much of the machine its control groups allow.
static bool is_hidden(const char *path, const void *caller) {
  if (!explored_is_fixed || !explore_is_own_code(caller)) return false;
  return strncmp(path, "/sys/fs/cgroup", 14) == 0 || strcmp(path, "/proc/self/cgroup") == 0 ||
         strcmp(path, "/proc/self/mountinfo") == 0;
}

static int open_at(int folder, const char *path, int flags, mode_t mode, const void *caller) {
  if (is_hidden(path, caller)) {
    errno = ENOENT;
    return -1;
  }
  return (int)explore_result(SYSTEM4(SYS_openat, folder, path, flags, mode));
}

#define MODE                                           \
  mode_t mode = 0;                                     \
  if (flags & (O_CREAT | O_TMPFILE)) {                 \
    va_list list;                                      \
    va_start(list, flags);                             \
    mode = va_arg(list, mode_t);                       \
    va_end(list);                                      \
  }

EXPORTED int open(const char *path, int flags, ...) {
  MODE
  return open_at(AT_FDCWD, path, flags, mode, CALLER);
}
EXPORTED int open64(const char *path, int flags, ...) {
  MODE
  return open_at(AT_FDCWD, path, flags, mode, CALLER);
}
EXPORTED int openat(int folder, const char *path, int flags, ...) {
  MODE
  return open_at(folder, path, flags, mode, CALLER);
}
EXPORTED int openat64(int folder, const char *path, int flags, ...) {
  MODE
  return open_at(folder, path, flags, mode, CALLER);
}

// MARK: What the engine asks about its threads (the linker's --wrap)

static const struct explored *with_id(uint32_t id) {
  for (uint32_t i = 0; i < explored_live_count; i++)
    if (explored_live[i]->id == id) return explored_live[i];
  return NULL;
}

char __real_concourse_thread_state(uint32_t id);
char __wrap_concourse_thread_state(uint32_t id);
char __wrap_concourse_thread_state(uint32_t id) {
  if (!explored_is_on) return __real_concourse_thread_state(id);
  const struct explored *thread = with_id(id);
  return !thread ? 0 : thread->state == CONCOURSE_EXPLORING_WAITING ? 'S' : 'R';
}

uint64_t __real_concourse_processor_time(uint32_t id);
uint64_t __wrap_concourse_processor_time(uint32_t id);
uint64_t __wrap_concourse_processor_time(uint32_t id) {
  if (!explored_is_on) return __real_concourse_processor_time(id);
  const struct explored *thread = with_id(id);
  return thread ? 1 + thread->points * 1000ull : 0;
}
