// Swift's runtime takes the lock of a `static let` under the id of its thread. Each of the runtime's libraries reads that
// id once and keeps it in a thread-local variable. A forked child has its parent's id there: where a second thread of the
// child meets such a lock, the kernel refuses it or lets it wait for the parent, and neither thread goes on. A daemon
// forks before it has threads, so the child forgets the id here.
//
// The variable is not exported. In a library's thread-local variables of the forking thread, a word that equals the
// thread's id is taken for it; the libraries have few such variables, and the others are addresses. A program's own
// `Mutex` keeps the id in a variable of the program, which is left alone. Where Swift's runtime is part of
// libdispatch.so, the linker finds the variable (Packaging/swift_runtime.c).

#define _GNU_SOURCE
#include "include/CConcourse.h"

#include <link.h>
#include <stddef.h>
#include <string.h>

// As the C library declares it for compilers.
struct variable {
  unsigned long module, offset;
};
extern void *__tls_get_addr(struct variable *);

static struct {
  unsigned long module;
  size_t words;
} runtimes[2];
static size_t runtime_count;

static int note_library(struct dl_phdr_info *library, size_t size, void *context) {
  (void)size, (void)context;
  const char *slash = strrchr(library->dlpi_name, '/');
  const char *name = slash ? slash + 1 : library->dlpi_name;
  if (strcmp(name, "libswiftCore.so") != 0 && strcmp(name, "libswift_Concurrency.so") != 0) return 0;
  for (size_t i = 0; i < library->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &library->dlpi_phdr[i];
    if (part->p_type != PT_TLS || part->p_align < sizeof(uint64_t)) continue;
    runtimes[runtime_count].module = library->dlpi_tls_modid;
    runtimes[runtime_count].words = part->p_memsz / sizeof(uint64_t);
    runtime_count++;
  }
  return runtime_count == sizeof runtimes / sizeof runtimes[0];
}

// Not in the child: another thread may have held the loader's lock. What `dlopen` loads later is not seen.
void concourse_note_swift_runtime(void) {
  if (runtime_count == 0) dl_iterate_phdr(note_library, NULL);
}

void concourse_forget_swift_thread(uint32_t thread) {
  for (size_t i = 0; thread != 0 && i < runtime_count; i++) {
    struct variable first = {runtimes[i].module, 0};
    uint64_t *words = __tls_get_addr(&first);
    for (size_t word = 0; word < runtimes[i].words; word++)
      if (words[word] == thread) words[word] = 0;
  }
}
