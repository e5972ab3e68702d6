// What can be told of another thread of this process that sleeps in the kernel, without disturbing it: its system call,
// the holder of the lock that it waits for, the task of Swift Concurrency that it runs.
//
// The thread may wake up and end meanwhile, so memory that belongs to it is read through the kernel, which refuses what is
// gone. The caller compares the thread's switches before and afterwards: if they are the same, it has slept throughout.

#define _GNU_SOURCE
#include "futex_bits.h"
#include "include/CConcourse.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

bool concourse_read_memory(uint64_t address, void *into, size_t size) {
  struct iovec to = {into, size}, from = {(void *)address, size};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size;
}

// The whole file, as a string; false if it is longer or cannot be read.
static bool read_file(uint32_t tid, const char *name, char *text, size_t capacity) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%u/%s", tid, name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  ssize_t length = read(file, text, capacity - 1);
  close(file);
  if (length <= 0) return false;
  text[length] = 0;
  return true;
}

bool concourse_read_switches(uint32_t tid, uint64_t counts[2]) {
  char text[16384];
  if (!read_file(tid, "status", text, sizeof text)) return false;
  const char *own = strstr(text, "\nvoluntary_ctxt_switches:");
  const char *forced = strstr(text, "\nnonvoluntary_ctxt_switches:");
  if (own == NULL || forced == NULL) return false;
  counts[0] = strtoull(strchr(own, ':') + 1, NULL, 10);
  counts[1] = strtoull(strchr(forced, ':') + 1, NULL, 10);
  return true;
}

bool concourse_read_sleep(uint32_t tid, struct concourse_sleep *sleep) {
  char text[256];
  if (!read_file(tid, "syscall", text, sizeof text)) return false;
  // "running", or -1 for a thread that sleeps without a system call: in a page fault.
  char *rest = text;
  sleep->call = strtoll(text, &rest, 10);
  if (rest == text || sleep->call < 0) return false;
  uint64_t values[8];
  for (int i = 0; i < 8; i++) {
    char *before = rest;
    values[i] = strtoull(rest, &rest, 16);
    if (rest == before) return false;
  }
  memcpy(sleep->arguments, values, sizeof sleep->arguments);
  sleep->stack = values[6];
  return true;
}

// Whether a thread sleeps in `concourse_futex_wait`. The C library's waits with a deadline are calls of the same kind, with
// all bits.
static bool is_own(const struct concourse_sleep *sleep) {
  return (sleep->arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET &&
         (uint32_t)sleep->arguments[5] == CONCOURSE_FUTEX_BITS;
}

uint64_t concourse_code_address(void) { return (uint64_t)concourse_futex_wait; }

enum concourse_wait concourse_wait_of(const struct concourse_sleep *sleep, uint32_t *holder) {
  if (sleep->call != SYS_futex) return CONCOURSE_WAIT_CALL;
  // `Lock.contended`: the holder of a lock of the engine cannot be told.
  if (is_own(sleep))
    return (uint32_t)sleep->arguments[2] == 1u << 31 ? CONCOURSE_WAIT_UNKNOWN : CONCOURSE_WAIT_ENGINE;
  uint32_t word = 0, mutex[3] = {0};
  switch (sleep->arguments[1] & FUTEX_CMD_MASK) {
    case FUTEX_LOCK_PI:
#ifdef FUTEX_LOCK_PI2
    case FUTEX_LOCK_PI2:
#endif
      // The word has its holder.
      if (!concourse_read_memory(sleep->arguments[0], &word, sizeof word)) return CONCOURSE_WAIT_UNKNOWN;
      *holder = word & FUTEX_TID_MASK;
      break;
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
      // A mutex of the C library: 2 in its first word, its holder in the third, the number of its users in the fourth, and
      // in the fifth its kind. The words behind another lock with that value, as malloc has, are not like that.
      if ((uint32_t)sleep->arguments[2] == 2 &&
          concourse_read_memory(sleep->arguments[0] + 8, mutex, sizeof mutex) && mutex[0] != 0 && mutex[1] != 0 &&
          mutex[2] < 1024 && concourse_thread_state(mutex[0]) != 0) {
        *holder = mutex[0];
        break;
      }
      // The C library's conditions, semaphores and joins.
      if ((sleep->arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET) return CONCOURSE_WAIT_CALL;
      return CONCOURSE_WAIT_UNKNOWN;
    default: return CONCOURSE_WAIT_UNKNOWN;
  }
  return *holder != 0 ? CONCOURSE_WAIT_LOCK : CONCOURSE_WAIT_UNKNOWN;
}

const char *concourse_name_of_call(int64_t call) {
  switch (call) {
    case SYS_nanosleep: case SYS_clock_nanosleep: return "a sleep";
    case SYS_futex: return "a condition, a semaphore or a lock of the system";
#define CALL(name) case SYS_##name: return #name "()";
    CALL(read) CALL(readv) CALL(pread64) CALL(preadv) CALL(preadv2)
    CALL(write) CALL(writev) CALL(pwrite64) CALL(pwritev) CALL(pwritev2)
    CALL(recvfrom) CALL(recvmsg) CALL(recvmmsg) CALL(sendto) CALL(sendmsg) CALL(sendmmsg)
    CALL(accept) CALL(accept4) CALL(connect) CALL(ppoll) CALL(pselect6) CALL(epoll_pwait)
    CALL(wait4) CALL(waitid) CALL(flock) CALL(fcntl) CALL(openat) CALL(ioctl)
    CALL(rt_sigtimedwait) CALL(rt_sigsuspend) CALL(semtimedop) CALL(semop) CALL(msgrcv) CALL(msgsnd)
    CALL(mq_timedreceive) CALL(mq_timedsend) CALL(io_getevents) CALL(splice) CALL(tee) CALL(sendfile)
#ifdef SYS_poll
    CALL(poll) CALL(select) CALL(epoll_wait) CALL(open) CALL(pause)
#endif
#ifdef SYS_epoll_pwait2
    CALL(epoll_pwait2)
#endif
#ifdef SYS_io_uring_enter
    CALL(io_uring_enter)
#endif
#ifdef SYS_futex_waitv
    CALL(futex_waitv)
#endif
#undef CALL
    default: return NULL;
  }
}

// MARK: Tasks

#define SWIFT_RUNTIME __attribute__((swiftcall, weak))
extern const void *swift_task_getCurrent(void) SWIFT_RUNTIME;
// What the runtime exports for debuggers. (The command `concourse report` reads tasks of other processes by them.)
extern const void *_swift_concurrency_debug_asyncTaskMetadata __attribute__((weak));
extern const uint32_t _swift_concurrency_debug_internal_layout_version __attribute__((weak));
extern const bool _swift_concurrency_debug_supportsPriorityEscalation __attribute__((weak));

// The thread-local variables of libswift_Concurrency.so.
static struct { uint64_t module, size; } variables;

static int note_concurrency(struct dl_phdr_info *library, size_t size, void *context) {
  (void)size, (void)context;
  uintptr_t known = (uintptr_t)swift_task_getCurrent;
  bool is_it = false;
  uint64_t bytes = 0;
  for (int i = 0; i < library->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = library->dlpi_phdr + i;
    if (part->p_type == PT_TLS) bytes = part->p_memsz;
    is_it |= part->p_type == PT_LOAD && known - (library->dlpi_addr + part->p_vaddr) < part->p_memsz;
  }
  if (!is_it) return 0;
  // A program that contains the runtime has its own variables beside those of the runtime.
  if (library->dlpi_name != NULL && *library->dlpi_name != 0 && bytes <= 4096) {
    variables.module = library->dlpi_tls_modid;
    variables.size = bytes;
  }
  return 1;
}

bool concourse_find_tasks(void) {
  // Reading memory through the kernel, as all above does, may end the process under a filter.
  if (!concourse_may_set_priority()) return false;
  if (swift_task_getCurrent == NULL || &_swift_concurrency_debug_asyncTaskMetadata == NULL) return false;
  dl_iterate_phdr(note_concurrency, NULL);
  return variables.module != 0 && variables.size != 0;
}

static uint64_t word_at(uint64_t address) {
  uint64_t word = 0;
  return concourse_read_memory(address, &word, sizeof word) ? word : 0;
}

// The name is in a record of the task, in the one layout that is known.
static void read_name(uint64_t task, char name[64]) {
  if (&_swift_concurrency_debug_internal_layout_version == NULL ||
      _swift_concurrency_debug_internal_layout_version != 1 ||
      &_swift_concurrency_debug_supportsPriorityEscalation == NULL ||
      _swift_concurrency_debug_supportsPriorityEscalation)
    return;
  const uint8_t kind_of_names = 6;
  uint64_t record = word_at(task + 104);
  for (int i = 0; i < 64 && record != 0; i++, record = word_at(record + 8)) {
    if ((uint8_t)word_at(record) != kind_of_names) continue;
    uint64_t text = word_at(record + 16);
    size_t length = 0;
    while (length < 63 && concourse_read_memory(text + length, name + length, 1) && name[length] != 0) length++;
    name[length] = 0;
    return;
  }
}

uint64_t concourse_task_of_thread(uint64_t state, char name[64]) {
  name[0] = 0;
  uint64_t pointer = state - (uint64_t)((char *)concourse_thread_current() - (char *)__builtin_thread_pointer());
  // glibc's table of the thread's variables has 16 bytes for each module; the first word is their address.
#ifdef __aarch64__
  uint64_t table = word_at(pointer);
#else
  uint64_t table = word_at(pointer + 8);
#endif
  uint64_t own = table == 0 ? 0 : word_at(table + variables.module * 16);
  if (own == 0) return 0;
  for (uint64_t place = 0; place + 8 <= variables.size; place += 8) {
    uint64_t task = word_at(own + place);
    // A job's class, two words, two of the scheduler, flags and number. The lowest byte of the flags is 0 for a task.
    uint32_t facts[2];
    if (task < 4096 || task % 16 != 0 || word_at(task) != (uint64_t)_swift_concurrency_debug_asyncTaskMetadata ||
        !concourse_read_memory(task + 32, facts, sizeof facts) || (facts[0] & 0xFF) != 0 || facts[1] == 0)
      continue;
    read_name(task, name);
    return facts[1];
  }
  return 0;
}
