// Swift's runtime takes the lock of a `static let` under the id of its thread. Each of the runtime's libraries reads that
// id once and keeps it in a thread-local variable. A forked child has its parent's id there: where a second thread of the
// child meets such a lock, the kernel refuses it or lets it wait for the parent, and neither thread goes on. A daemon
// forks before it has threads, so the child forgets the id here.
//
// The variable is not exported. In a library's thread-local variables of the forking thread, a word that equals the
// thread's id is taken for it; the libraries have few such variables, and the others are addresses. If `fork` is called
// while a library's function runs, such as inside the closure of a `static let`, its id stays: the lock that the thread
// has then is its parent's, and must be unlocked so. A program's own `Mutex` keeps the id in a variable of the program,
// which is left alone, and so is a runtime that is linked into the program. Where the runtime is part of libdispatch.so,
// the linker finds the variable (Packaging/swift_runtime.c).

#define _GNU_SOURCE
#include "include/CConcourse.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unwind.h>

// As the C library declares it for compilers.
struct variable {
  unsigned long module, offset;
};
extern void *__tls_get_addr(struct variable *);

static struct runtime {
  unsigned long module;
  // Of its thread-local variables.
  size_t size;
  uintptr_t code, end_of_code;
} runtimes[2];
static size_t runtime_count;

// The thread that forks: its id, and whether it is inside a function of each runtime.
static __thread struct {
  uint32_t id;
  bool is_inside[2];
} forking __attribute__((tls_model("initial-exec")));

static int note_library(struct dl_phdr_info *library, size_t size, void *context) {
  (void)size, (void)context;
  const char *slash = strrchr(library->dlpi_name, '/');
  const char *name = slash ? slash + 1 : library->dlpi_name;
  if (strcmp(name, "libswiftCore.so") != 0 && strcmp(name, "libswift_Concurrency.so") != 0) return 0;
  struct runtime found = {.module = library->dlpi_tls_modid};
  for (size_t i = 0; i < library->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &library->dlpi_phdr[i];
    if (part->p_type == PT_TLS) found.size = part->p_memsz;
    if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
      found.code = library->dlpi_addr + part->p_vaddr;
      found.end_of_code = found.code + part->p_memsz;
    }
  }
  if (found.module != 0 && found.size != 0) runtimes[runtime_count++] = found;
  return runtime_count == sizeof runtimes / sizeof runtimes[0];
}

// Not in the child: another thread may have held the loader's lock. What `dlopen` loads later is not seen.
void concourse_note_swift_runtime(void) {
  if (runtime_count == 0) dl_iterate_phdr(note_library, NULL);
}

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *frame, void *context) {
  (void)context;
  uintptr_t code = _Unwind_GetIP(frame);
  for (size_t i = 0; i < runtime_count; i++)
    if (code >= runtimes[i].code && code < runtimes[i].end_of_code) forking.is_inside[i] = true;
  return _URC_NO_REASON;
}

void concourse_prepare_swift_fork(void) {
  if (runtime_count == 0) return;
  forking.id = concourse_gettid();
  memset(forking.is_inside, 0, sizeof forking.is_inside);
  _Unwind_Backtrace(look_at_frame, NULL);
}

void concourse_forget_swift_thread(void) {
  for (size_t i = 0; forking.id != 0 && i < runtime_count; i++) {
    if (forking.is_inside[i]) continue;
    struct variable first = {runtimes[i].module, 0};
    char *variables = __tls_get_addr(&first);
    for (size_t place = 0; place + sizeof(uint32_t) <= runtimes[i].size; place += sizeof(uint64_t)) {
      // The last one may be half a word.
      size_t left = runtimes[i].size - place;
      uint64_t word = 0;
      memcpy(&word, variables + place, left < sizeof word ? sizeof(uint32_t) : sizeof word);
      if (word == forking.id) memset(variables + place, 0, sizeof(uint32_t));
    }
  }
  forking.id = 0;
}
