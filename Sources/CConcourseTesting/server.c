// The server, and what its children ask of the exploring library.

#define _GNU_SOURCE
#include "include/concourse_testing.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *name;
static bool is_run;
static struct concourse_exploring_header *file;
static int (*begin)(struct concourse_exploring_header *);
static void (*explore)(void);
static int (*await_idleness)(void);

const char *concourse_testing_name(void) { return name; }

void concourse_testing_explore(void) {
  // What the test runner has printed so far is not of this schedule.
  fflush(NULL);
  if (ftruncate(STDOUT_FILENO, 0) == 0) lseek(STDOUT_FILENO, 0, SEEK_SET);
  explore();
}

int concourse_testing_await_idleness(void) { return is_run ? await_idleness() : 0; }

_Noreturn void concourse_testing_exit(int status) {
  fflush(NULL);
  _exit(status);
}

int concourse_testing_fix_addresses(void) {
  int former = personality(0xFFFFFFFF);
  if (former >= 0) personality((unsigned long)former | ADDR_NO_RANDOMIZE);
  return former;
}

void concourse_testing_leave_addresses(int former) {
  if (former >= 0) personality((unsigned long)former);
}

void concourse_testing_move_here(int process) {
  cpu_set_t set;
  int processor = sched_getcpu();
  if (processor < 0 || processor >= CPU_SETSIZE) return;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(process, sizeof set, &set);
}

static void send_bytes(const void *bytes, size_t size) {
  while (write(CONCOURSE_TESTING_SOCKET, bytes, size) < 0 && errno == EINTR) continue;
}

_Noreturn static void refuse(char reason) {
  send_bytes(&reason, 1);
  _exit(1);
}

/// Whether the object of the exploring library is where the program's calls of Dispatch go.
static int is_in_front(const void *library) {
  Dl_info own, found;
  const void *function = dlsym(RTLD_DEFAULT, "dispatch_async_f");
  return function && dladdr(library, &own) && dladdr(function, &found) && own.dli_fbase == found.dli_fbase;
}

static void become_run(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The server ends what the body has started.
  setpgid(0, 0);
  // The output is a file: a run that the library ends would lose what is in the buffer.
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(input, STDIN_FILENO);
  close(input);
  close(CONCOURSE_TESTING_SOCKET);
  is_run = true;
  begin(file);
}

// The first object is the program.
static int note_base(struct dl_phdr_info *object, size_t size, void *base) {
  (void)size;
  *(uint64_t *)base = object->dlpi_addr;
  return 1;
}

// Returns in the children.
static void serve(void) {
  char ready = CONCOURSE_TESTING_READY;
  uint64_t base = 0;
  dl_iterate_phdr(note_base, &base);
  send_bytes(&ready, 1);
  send_bytes(&base, sizeof base);
  char request;
  for (;;) {
    ssize_t count = read(CONCOURSE_TESTING_SOCKET, &request, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) _exit(0);
    pid_t child = fork();
    if (child == 0) return become_run();
    int status = -1;
    siginfo_t information;
    while (child > 0 && waitid(P_PID, (id_t)child, &information, WEXITED | WNOWAIT) < 0 && errno == EINTR) continue;
    // While the child is a zombie, the kernel gives the id of its group to no other.
    if (child > 0) kill(-child, SIGKILL);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    send_bytes(&status, sizeof status);
  }
}

static bool has_threads(void) {
  DIR *folder = opendir("/proc/self/task");
  int count = 0;
  while (folder && readdir(folder)) count++;
  if (folder) closedir(folder);
  // Two entries are of the folders.
  return count != 3;
}

void concourse_testing_serve(void) {
  if (is_run) return;
  if (has_threads()) refuse(CONCOURSE_TESTING_HAS_THREADS);
  serve();
}

// All libraries are loaded now, and their constructors have run.
__attribute__((constructor)) static void start(void) {
  const char *wanted = getenv(CONCOURSE_TESTING_VARIABLE);
  if (!wanted || !*wanted) return;
  bool is_early = *wanted == CONCOURSE_TESTING_EARLY;
  name = strdup(wanted + 1);
  // Processes that the test starts are no servers.
  unsetenv(CONCOURSE_TESTING_VARIABLE);
  begin = dlsym(RTLD_DEFAULT, CONCOURSE_EXPLORING_BEGIN);
  explore = dlsym(RTLD_DEFAULT, CONCOURSE_EXPLORING_EXPLORE);
  void (*hold)(void) = dlsym(RTLD_DEFAULT, CONCOURSE_EXPLORING_HOLD);
  await_idleness = dlsym(RTLD_DEFAULT, CONCOURSE_EXPLORING_IDLE);
  if (!begin || !explore || !hold || !await_idleness) refuse(CONCOURSE_TESTING_WITHOUT_LIBRARY);
  if (!is_in_front((const void *)begin)) refuse(CONCOURSE_TESTING_OTHER_DISPATCH);
  struct stat status;
  file = MAP_FAILED;
  if (fstat(CONCOURSE_TESTING_FILE, &status) == 0)
    file = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, CONCOURSE_TESTING_FILE, 0);
  if (file == MAP_FAILED || file->version != CONCOURSE_EXPLORING_VERSION) refuse(CONCOURSE_TESTING_OTHER_VERSION);
  dup2(CONCOURSE_TESTING_OUTPUT, STDOUT_FILENO);
  dup2(CONCOURSE_TESTING_OUTPUT, STDERR_FILENO);
  close(CONCOURSE_TESTING_FILE);
  close(CONCOURSE_TESTING_OUTPUT);
  // A process that the test starts must not keep the socket open.
  fcntl(CONCOURSE_TESTING_SOCKET, F_SETFD, FD_CLOEXEC);
  if (is_early) return serve();
  hold();
}
