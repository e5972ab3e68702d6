#define _GNU_SOURCE
#include "include/CConcourse.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

// In this section perf looks for the semaphores of probes.
__attribute__((section(".probes"), aligned(64))) union concourse_recording_word concourse_recording_word;

struct concourse_recording concourse_recording_record = {
    .layout = CONCOURSE_RECORDING_LAYOUT,
    .size = sizeof concourse_recording_record,
    .word = &concourse_recording_word,
};

// Sizes of name and content, the type, the name, and the distance from the content to the record. A note remains when
// the symbols are stripped. The other types of this owner are in inspection.c.
__asm__(
    ".pushsection .note.concourse.recording,\"a\",@note\n"
    ".balign 4\n"
    ".long 10, 8, 4\n"
    ".asciz \"Concourse\"\n"
    ".balign 4\n"
    "0: .quad concourse_recording_record - 0b\n"
    ".popsection\n");

// What `concourse trace` expects, which declares the layout once more.
_Static_assert(sizeof(struct concourse_recording_header) == 120, "the header of a recording");
_Static_assert(sizeof(struct concourse_event_ring) == 64, "a ring of a recording");
_Static_assert(sizeof(struct concourse_event_record) == 32, "a record of a recording");
_Static_assert(sizeof(struct concourse_queue_name) == 128, "a name in a recording");

struct module_list {
  char *into;
  size_t size, used;
  char program[1024];
};

static int add_module(struct dl_phdr_info *module, size_t size, void *argument) {
  struct module_list *list = argument;
  // The first module is the program, which has no name here.
  const char *path = module->dlpi_name;
  if (path == NULL || *path == 0) path = list->used == 0 ? list->program : "";
  // Without a file: the kernel's vDSO.
  if (*path != '/') return 0;
  size_t room = list->used < list->size ? list->size - list->used : 0;
  char nothing;
  int length = snprintf(room ? list->into + list->used : &nothing, room, "%llx %s\n",
                        (unsigned long long)module->dlpi_addr, path);
  if (length > 0) list->used += (size_t)length;
  return 0;
}

size_t concourse_modules(char *into, size_t size) {
  struct module_list list = {.into = into, .size = size};
  ssize_t length = readlink("/proc/self/exe", list.program, sizeof list.program - 1);
  list.program[length > 0 ? length : 0] = 0;
  dl_iterate_phdr(add_module, &list);
  return list.used;
}

static int read_loads(struct dl_phdr_info *module, size_t size, void *argument) {
  *(uint64_t *)argument = module->dlpi_adds;
  return 1;
}

uint64_t concourse_modules_loaded(void) {
  uint64_t loads = 0;
  dl_iterate_phdr(read_loads, &loads);
  return loads;
}

const char *concourse_recorder_setting(const char *name) { return secure_getenv(name); }

int concourse_reserve(const char *path, void *mapping, size_t offset, size_t size) {
  const int populate_write = 23;
  size_t start = offset & ~((size_t)sysconf(_SC_PAGESIZE) - 1);
  int error;
  do error = madvise((char *)mapping + start, offset + size - start, populate_write) == 0 ? 0 : errno;
  while (error == EINTR);
  if (error != EINVAL) return error;
  // Linux before 5.14.
  int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return errno;
  do error = posix_fallocate(file, (off_t)offset, (off_t)size);
  while (error == EINTR);
  close(file);
  return error;
}

uint64_t concourse_file_limit(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

bool concourse_has_steady_ticks(void) {
#if defined(__x86_64__)
  // The kernel uses the counter for its own clock only if it is steady.
  char name[8] = {0};
  int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  ssize_t length = read(file, name, sizeof name - 1);
  close(file);
  return length >= 4 && strncmp(name, "tsc\n", 4) == 0;
#else
  return false;
#endif
}

size_t concourse_return_addresses(uint64_t *into, size_t capacity) {
  size_t count = 0;
  uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
  while (count < capacity) {
    uintptr_t words[2];
    // A caller that was compiled without frame pointers has any number in their place.
    struct iovec to = {words, sizeof words}, from = {(void *)frame, sizeof words};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)sizeof words || words[1] == 0) break;
    into[count++] = words[1];
    if (words[0] <= frame || words[0] - frame > 1 << 20 || words[0] % sizeof(uintptr_t) != 0) break;
    frame = words[0];
  }
  return count;
}

void concourse_get_thread_name(char *name) {
  name[0] = 0;
  (void)prctl(PR_GET_NAME, name);
  name[15] = 0;
}
