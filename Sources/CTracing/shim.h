// System calls on another process, and a few others, that Swift's Glibc module leaves out. Results are counts, or the
// negated errno. Also the version, as CONCOURSE_VERSION, and the layout of the engine's state of a thread.
#ifndef CONCOURSE_TRACING_H
#define CONCOURSE_TRACING_H

#include "../CConcourse/concourse_version.h"
#include "../CConcourse/include/concourse_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

long syscall(long number, ...);
int pthread_tryjoin_np(pthread_t thread, void *_Nullable *_Nullable result);

/// Copies from the memory of a process; may copy less.
static inline long tracing_read(pid_t process, uint64_t address, void *_Nonnull into, size_t count) {
  struct iovec here = {into, count}, there = {(void *)address, count};
  long done = syscall(SYS_process_vm_readv, (long)process, &here, 1L, &there, 1L, 0L);
  return done < 0 ? -errno : done;
}

/// Copies into the memory of a process.
static inline long tracing_write(pid_t process, uint64_t address, void *_Nonnull from, size_t count) {
  struct iovec here = {from, count}, there = {(void *)address, count};
  long done = syscall(SYS_process_vm_writev, (long)process, &here, 1L, &there, 1L, 0L);
  return done < 0 ? -errno : done;
}

/// Stops one thread, copies its general registers, and lets it run on. A stopped process stays stopped.
static inline long tracing_registers(pid_t thread, void *_Nonnull registers, size_t size) {
  const long getRegisterSet = 0x4204, seize = 0x4206, interrupt = 0x4207, detach = 17, general = 1;
  if (syscall(SYS_ptrace, seize, (long)thread, 0L, 0L) != 0) return -errno;
  struct iovec place = {registers, size};
  long result = syscall(SYS_ptrace, interrupt, (long)thread, 0L, 0L);
  int status = 0;
  if (result == 0 && waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status))
    result = syscall(SYS_ptrace, getRegisterSet, (long)thread, general, &place);
  else
    result = -1;
  long failure = result < 0 ? -errno : (long)place.iov_len;
  // A signal that the thread was about to receive must still reach it.
  long signal = WIFSTOPPED(status) && (status >> 16) == 0 ? WSTOPSIG(status) : 0;
  syscall(SYS_ptrace, detach, (long)thread, 0L, signal);
  return failure;
}

/// Joins a thread of this process if it has ended.
static inline int tracing_join_ended(pthread_t thread) { return pthread_tryjoin_np(thread, 0); }

/// Copies what `read_name` makes of a name, in a child process that may take 200 ms of processor time, and two seconds. -1
/// if it takes more, fails, or its result has no room. At most 16 KiB have room.
static inline long tracing_read_name(
    char *_Nullable (*_Nonnull read_name)(const char *_Nonnull), const char *_Nonnull name, char *_Nonnull into,
    size_t size) {
  int ends[2];
  if (syscall(SYS_pipe2, ends, (long)(O_CLOEXEC | O_NONBLOCK)) != 0) return -1;
  pid_t child = fork();
  if (child == 0) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGPROF, SIG_DFL);
    signal(SIGALRM, SIG_DFL);
    sigset_t all;
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, 0);
    struct itimerval own = {{0, 0}, {0, 200000}}, real = {{0, 0}, {2, 0}};
    setitimer(ITIMER_PROF, &own, 0);
    setitimer(ITIMER_REAL, &real, 0);
    char *text = read_name(name);
    if (text != 0 && strlen(text) <= size) _exit(write(ends[1], text, strlen(text)) < 0);
    _exit(1);
  }
  close(ends[1]);
  // The pipe has room for the result. Its end may be open in another child that has been started meanwhile.
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  long count = child > 0 && status == 0 ? read(ends[0], into, size) : -1;
  close(ends[0]);
  return count;
}

/// Starts a program that is killed when the calling thread ends, however that ends. The kernel forgets it if the program
/// gets another user's rights, by its file or by a call, and does not extend it to the program's children.
/// - `output`: becomes standard output, unless it is -1. `is_apart`: it becomes standard error, too; standard input is
///   empty, and the program gets a process group of its own.
/// Returns the negated errno if it cannot be started.
static inline pid_t tracing_start(
    const char *_Nonnull path, char *_Nullable const *_Nonnull arguments, char *_Nullable const *_Nonnull environment,
    int output, int is_apart) {
  const long parentDeathSignal = 1;
  int ends[2];
  if (syscall(SYS_pipe2, ends, (long)O_CLOEXEC) != 0) return -errno;
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    int nothing = is_apart ? open("/dev/null", O_RDONLY) : STDIN_FILENO;
    // The parent may have ended before the kernel was asked.
    if (syscall(SYS_prctl, parentDeathSignal, (long)SIGKILL, 0L, 0L, 0L) == 0 && getppid() != parent) _exit(127);
    if (nothing >= 0 && (!is_apart || setpgid(0, 0) == 0) && dup2(nothing, STDIN_FILENO) >= 0
        && (!is_apart || dup2(output, STDERR_FILENO) >= 0) && (output < 0 || dup2(output, STDOUT_FILENO) >= 0))
      execve(path, (char **)arguments, (char **)environment);
    int failure = errno;
    _exit(write(ends[1], &failure, sizeof failure) < 0 ? 126 : 127);
  }
  int failure = child < 0 ? errno : 0;
  close(ends[1]);
  // The end of the pipe closes with the exec.
  while (child > 0 && read(ends[0], &failure, sizeof failure) < 0 && errno == EINTR) {}
  close(ends[0]);
  if (failure == 0) return child;
  while (child > 0 && waitpid(child, 0, 0) < 0 && errno == EINTR) {}
  return -failure;
}

/// A file in memory, closed on exec, or -1.
static inline int tracing_memory_file(void) {
  const long closeOnExec = 1;
  return (int)syscall(SYS_memfd_create, "concourse", closeOnExec);
}

/// A file in memory whose size can be fixed (F_ADD_SEALS), closed on exec, or -1.
static inline int tracing_shared_file(void) {
  const long closeOnExec = 1, allowSealing = 2;
  return (int)syscall(SYS_memfd_create, "concourse", closeOnExec | allowSealing);
}

/// From now on, processes whose parents have ended become children of this one.
static inline void tracing_adopt_orphans(void) {
  const long childSubreaper = 36;
  syscall(SYS_prctl, childSubreaper, 1L, 0L, 0L, 0L);
}

/// Programs that this process starts from now on have their memory at the same addresses each time.
static inline int tracing_fix_addresses(void) {
  const long ask = 0xFFFFFFFF, noRandomization = 0x0040000;
  long now = syscall(SYS_personality, ask);
  return now >= 0 && syscall(SYS_personality, now | noRandomization) >= 0 ? 0 : -1;
}

#endif
