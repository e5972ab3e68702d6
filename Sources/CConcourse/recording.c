#define _GNU_SOURCE
#include "include/CConcourse.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

// The code of the modules, for items that begin without asking the loader, whose lock a thread may hold that waits for
// them. Each is a number of a page in the upper 36 bits, and a count of pages.
enum { CODE_LIMIT = 256, PAGE_BITS = 12, COUNT_BITS = 28 };
static uint64_t code[CODE_LIMIT];
static uint32_t code_count;

static void add_code(const struct dl_phdr_info *module, uint32_t *count) {
  for (int i = 0; i < module->dlpi_phnum && *count < CODE_LIMIT; i++) {
    const ElfW(Phdr) *part = module->dlpi_phdr + i;
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
    uint64_t first = (module->dlpi_addr + part->p_vaddr) >> PAGE_BITS;
    uint64_t last = (module->dlpi_addr + part->p_vaddr + part->p_memsz) >> PAGE_BITS;
    // ORDERING: relaxed; an entry is whole. One of a module that has gone names an item wrongly at most.
    __atomic_store_n(&code[(*count)++], first << COUNT_BITS | (last - first + 1), __ATOMIC_RELAXED);
  }
}

static void set_code_count(uint32_t count) {
  // ORDERING: releasing; pairs with the load in `same_code`: the entries are there.
  __atomic_store_n(&code_count, count, __ATOMIC_RELEASE);
}

static int add_code_only(struct dl_phdr_info *module, size_t size, void *argument) {
  add_code(module, argument);
  return 0;
}

// Whether two addresses are in the code of one module.
static bool same_code(uint64_t one, uint64_t other) {
  // ORDERING: acquiring; pairs with `set_code_count`.
  uint32_t count = __atomic_load_n(&code_count, __ATOMIC_ACQUIRE);
  if (count == 0) {
    dl_iterate_phdr(add_code_only, &count);
    set_code_count(count);
  }
  for (uint32_t i = 0; i < count; i++) {
    // ORDERING: relaxed; see `add_code`.
    uint64_t entry = __atomic_load_n(&code[i], __ATOMIC_RELAXED);
    uint64_t first = entry >> COUNT_BITS, pages = entry & ((1ull << COUNT_BITS) - 1);
    if ((one >> PAGE_BITS) - first < pages) return (other >> PAGE_BITS) - first < pages;
  }
  return false;
}

uint64_t concourse_block_function(const void *block) {
  const struct {
    const void *class;
    uint32_t flags, reserved;
    uint64_t function;
    const uint64_t *descriptor;
    uint64_t captured[2];
  } *found = block;
  enum { HAS_COPY = 1 << 25 };
  // A closure is its code and a counted object. A block of C that has captured as much begins with the counted one.
  if (!(found->flags & HAS_COPY) || found->descriptor[1] != sizeof *found) return found->function;
  return same_code(found->function, found->captured[0]) ? found->captured[0] : found->function;
}

struct module_list {
  char *into;
  size_t size, used;
  uint32_t code_count;
  char program[1024];
};

static int add_module(struct dl_phdr_info *module, size_t size, void *argument) {
  struct module_list *list = argument;
  add_code(module, &list->code_count);
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
  set_code_count(list.code_count);
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

int concourse_reserve(const char *path, const struct concourse_file_identity *identity, void *mapping, size_t offset,
                      size_t size) {
  const int populate_write = 23;
  size_t start = offset & ~((size_t)sysconf(_SC_PAGESIZE) - 1);
  int error;
  do error = madvise((char *)mapping + start, offset + size - start, populate_write) == 0 ? 0 : errno;
  while (error == EINTR);
  if (error != EINVAL) return error;
  // Linux before 5.14.
  return concourse_reserve_file(path, identity, offset, size);
}

int concourse_reserve_file(const char *path, const struct concourse_file_identity *identity, size_t offset, size_t size) {
  int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), error = ENOENT;
  if (file < 0) return errno;
  // The program may have put another file in its place.
  struct concourse_file_identity found;
  if (concourse_identify_file(file, &found) && found.device == identity->device && found.node == identity->node) {
    do error = posix_fallocate(file, (off_t)offset, (off_t)size);
    while (error == EINTR);
  }
  close(file);
  return error;
}

bool concourse_identify_file(int file, struct concourse_file_identity *identity) {
  struct stat status;
  if (fstat(file, &status) != 0) return false;
  *identity = (struct concourse_file_identity){.device = status.st_dev, .node = status.st_ino};
  return true;
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
  pid_t self = getpid();
  uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
  while (count < capacity) {
    uintptr_t words[2];
    // A caller that was compiled without frame pointers has any number in their place.
    struct iovec to = {words, sizeof words}, from = {(void *)frame, sizeof words};
    if (process_vm_readv(self, &to, 1, &from, 1, 0) != (ssize_t)sizeof words || words[1] == 0) break;
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

// Of Swift's runtime; all NULL in a program without Swift Concurrency.
#define SWIFT_RUNTIME __attribute__((swiftcall, weak))
extern uint32_t swift_task_getJobFlags(const void *job) SWIFT_RUNTIME;
extern uint64_t swift_task_getJobTaskId(const void *job) SWIFT_RUNTIME;
extern const void *swift_task_getCurrent(void) SWIFT_RUNTIME;
extern const char *swift_task_getCurrentTaskName(void) SWIFT_RUNTIME;

// The code and the data of libswift_Concurrency.so.
static struct { uintptr_t code, code_end, data, data_end; } concurrency;

static int find_concurrency(struct dl_phdr_info *module, size_t size, void *argument) {
  uintptr_t known = (uintptr_t)swift_task_getJobFlags;
  __typeof__(concurrency) found = {0};
  for (int i = 0; i < module->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = module->dlpi_phdr + i;
    uintptr_t start = module->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;
    if (part->p_type != PT_LOAD) continue;
    if (part->p_flags & PF_X && known >= start && known < end) {
      found.code = start;
      found.code_end = end;
    }
    // A second part with data follows the first one.
    if (part->p_flags & PF_W) {
      if (found.data == 0) found.data = start;
      found.data_end = end;
    }
  }
  if (found.code == 0) return 0;
  // In a program that contains the runtime, its functions cannot be told from the program's.
  if (module->dlpi_name != NULL && *module->dlpi_name != 0) concurrency = found;
  return 1;
}

static void prepare_concurrency(void) { dl_iterate_phdr(find_concurrency, NULL); }

// Whether an item is a job: a function of the runtime with an object of the class of tasks or of that of other jobs.
static bool is_job(uint64_t function, const void *context) {
  if (context == NULL || function == 0) return false;
  if (function == (uint64_t)concourse_run_preferred_job || function == (uint64_t)concourse_run_isolated_job) return true;
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, prepare_concurrency);
  if (function < concurrency.code || function >= concurrency.code_end) return false;
  const uint64_t task_class = 0x502, job_class = 0x503;
  uintptr_t class = *(const uintptr_t *)context;
  if (class < concurrency.data || class > concurrency.data_end - sizeof class || class % sizeof class != 0) return false;
  uint64_t kind = *(const uint64_t *)class;
  return kind == task_class || kind == job_class;
}

uint64_t concourse_job_code(uint64_t function, const void *context) {
  if (swift_task_getJobFlags == NULL || swift_task_getJobTaskId == NULL || !is_job(function, context)) return function;
  // The lowest byte of the flags is the kind, the next one the priority.
  uint64_t priority = swift_task_getJobFlags(context) >> 8 & 0xFF;
  return 1ull << 63 | priority << 48 | (swift_task_getJobTaskId(context) & ((1ull << 48) - 1));
}

const char *concourse_current_task(uint64_t *number) {
  if (swift_task_getCurrent == NULL || swift_task_getCurrentTaskName == NULL || swift_task_getJobTaskId == NULL) {
    return NULL;
  }
  const void *task = swift_task_getCurrent();
  if (task == NULL) return NULL;
  *number = swift_task_getJobTaskId(task) & ((1ull << 48) - 1);
  return swift_task_getCurrentTaskName();
}
