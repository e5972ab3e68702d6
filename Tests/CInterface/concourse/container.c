// Under the filter of a container, which kills for no call, threads have the nice values and the time slices that they
// have without a filter. A second filter may kill the process for the calls that set them: it was there before the program
// started, or the program installs it. So may the only filter, if the container's first process has none or cannot be
// asked. All queues then work without these calls.
//
// Each case is this program in a name space of processes; to make one needs privilege.

#include "killing_filter.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

// What the program runs again with, in place of /proc/self/exe.
static int program = -1;

static void start_again(const char *part) {
  char number[16], name[16];
  snprintf(number, sizeof number, "%d", program);
  snprintf(name, sizeof name, "%s", part);
  char *arguments[] = {(char *)"container", name, number, NULL};
  extern char **environ;
  syscall(SYS_execveat, program, "", arguments, environ, AT_EMPTY_PATH);
  perror("execveat");
  _exit(126);
}

// Runs a part in a new process, under a second filter that kills if asked.
static void check_part(const char *part, bool kills) {
  pid_t child = fork();
  if (child == 0) {
    if (kills) install_killing_filter(false);
    start_again(part);
  }
  int status = -1;
  check_equal(waitpid(child, &status, 0), child);
  check_that(status == 0, part, __FILE__, __LINE__);
}

// MARK: Parts

static void work(void) {
  dispatch_semaphore_t done = dispatch_semaphore_create(0);
  const long classes[] = {USER_INTERACTIVE, USER_INITIATED, NORMAL, UTILITY, BACKGROUND};
  for (int i = 0; i < 5; i++) {
    for (int round = 0; round < 20; round++) {
      dispatch_async(dispatch_get_global_queue(classes[i], 0), ^{
        dispatch_semaphore_signal(done);
      });
      dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
    }
  }
  dispatch_release(done);
}

struct attributes {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};

// The kernel tells the slice since 6.12.
static bool tells_slice(void) {
  struct attributes own = {.size = sizeof own, .nice = getpriority(PRIO_PROCESS, 0), .runtime = 1000000}, seen = {0};
  return syscall(SYS_sched_setattr, 0, &own, 0) == 0 && syscall(SYS_sched_getattr, 0, &seen, sizeof seen, 0) == 0 &&
         seen.runtime == own.runtime;
}

static void check_class(long class, int nice, uint64_t slice) {
  event *ended = malloc(sizeof *ended);
  event_init(ended);
  dispatch_async(dispatch_get_global_queue(class, 0), ^{
    struct attributes seen = {0};
    check_equal(syscall(SYS_sched_getattr, 0, &seen, sizeof seen, 0), 0);
    check_equal(seen.nice, nice);
    if (slice != 0) check_equal(seen.runtime, slice);
    event_happens(ended);
  });
  event_wait(ended);
  free(ended);
}

// With the privilege to raise threads also the classes above default have nice values of their own.
static void check_priorities(bool may_raise) {
  bool slices = tells_slice();
  check_class(BACKGROUND, 10, slices ? 150000 : 0);
  check_class(UTILITY, 2, slices ? 300000 : 0);
  check_class(NORMAL, 0, 0);
  check_class(USER_INTERACTIVE, may_raise ? -4 : 0, 0);
}

static event lowered, reported;
static int ends[2];

static void *submit_lowered(void *unused) {
  check_equal(setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 15), 0);
  // Two items that wait for each other have two threads.
  dispatch_semaphore_t both = dispatch_semaphore_create(0);
  for (int i = 0; i < 2; i++) {
    dispatch_async(dispatch_get_global_queue(NORMAL, 0), ^{
      check_equal(getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid)), 0);
      dispatch_semaphore_signal(both);
      event_happens(&reported);
      dispatch_semaphore_wait(both, DISPATCH_TIME_FOREVER);
    });
  }
  return unused;
}

// A thread that the program has lowered makes no thread of the default band: it could not be raised again.
static void check_lowered(void) {
  event_init(&lowered);
  event_init(&reported);
  check_equal(pipe(ends), 0);
  // With the first worker of a lowered band, the monitor has its thread, and the default band has none. The second item
  // begins when the monitor has found the first blocked.
  for (int i = 0; i < 8; i++) {
    dispatch_async(dispatch_get_global_queue(BACKGROUND, 0), ^{
      char byte;
      event_happens(&lowered);
      check_equal(read(ends[0], &byte, 1), 1);
    });
  }
  for (int i = 0; i < 8; i++) event_wait(&lowered);
  pthread_t client;
  check_equal(pthread_create(&client, NULL, submit_lowered, NULL), 0);
  check_equal(pthread_join(client, NULL), 0);
  for (int i = 0; i < 2; i++) event_wait(&reported);
  check_equal(write(ends[1], "12345678", 8), 8);
}

static int run_part(const char *part) {
  if (strcmp(part, "container") == 0) {
    check_part("lowered", false);
    check_part("priorities", false);
    check_part("work", true);
    check_part("later", false);
  }
  if (strcmp(part, "raising") == 0) check_priorities(true);
  if (strcmp(part, "unfiltered") == 0 || strcmp(part, "hidden") == 0) check_part("work", true);
  if (strcmp(part, "lowered") == 0 || strcmp(part, "rootless") == 0) check_lowered();
  if (strcmp(part, "priorities") == 0) check_priorities(false);
  if (strcmp(part, "work") == 0) work();
  if (strcmp(part, "later") == 0) {
    work();
    install_killing_filter(true);
    work();
  }
  return checks_failed == 0 ? 0 : 1;
}

// MARK: Containers

static void drop_privilege(void) {
  prctl(PR_CAPBSET_DROP, CAP_SYS_NICE, 0, 0, 0);
  check_equal(setrlimit(RLIMIT_NICE, &(struct rlimit){0, 0}), 0);
}

// All capabilities, which the kernel does not accept for nice values.
static void enter_user_namespace(void) {
  check_equal(setrlimit(RLIMIT_NICE, &(struct rlimit){0, 0}), 0);
  if (unshare(CLONE_NEWUSER) != 0) _exit(77);
  int map = open("/proc/self/uid_map", O_WRONLY);
  if (map < 0 || write(map, "0 0 1", 5) != 5) _exit(77);
  close(map);
}

// As a container's: one call is refused.
static void install_refusing_filter(void) {
  struct sock_filter instructions[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      KILLS(swapoff, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  install_filter(instructions, sizeof instructions / sizeof *instructions);
}

// The first process of a name space.
static void be_container(const char *part) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("none", "/proc", "proc", 0, NULL) != 0)
    _exit(77);
  if (setpriority(PRIO_PROCESS, 0, 0) != 0) _exit(77);
  setenv("container", "podman", 1);
  if (strcmp(part, "rootless") == 0)
    enter_user_namespace();
  else if (strcmp(part, "raising") != 0)
    drop_privilege();
  if (strcmp(part, "hidden") == 0 && mount("none", "/proc", "tmpfs", 0, NULL) != 0) _exit(77);
  if (strcmp(part, "unfiltered") != 0 && strcmp(part, "hidden") != 0) install_refusing_filter();
  // Its own, before the program starts in its place.
  if (strcmp(part, "work") == 0) install_killing_filter(false);
  start_again(part);
}

static void check_container(const char *part) {
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) _exit(77);
    pid_t first = fork();
    if (first == 0) be_container(part);
    int status = -1;
    waitpid(first, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  int status = -1;
  check_equal(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
    printf("no name space is granted: \"%s\" is not tried\n", part);
  else
    check_that(status == 0, part, __FILE__, __LINE__);
}

int main(int count, char **arguments) {
  if (count > 2) {
    program = atoi(arguments[2]);
    return run_part(arguments[1]);
  }
  program = open("/proc/self/exe", O_RDONLY);
  if (program < 0) program = open(arguments[0], O_RDONLY);
  check(program >= 0);
  const char *const parts[] = {"container", "rootless", "raising", "work", "unfiltered", "hidden"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) check_container(parts[i]);
  return finish();
}
