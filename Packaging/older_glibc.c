// Part of libdispatch.so where Scripts/library links it for a glibc that is older than this system's (CONCOURSE_GLIBC).
//
// The linker binds each function to the newest version that this system's glibc has. The loader of an older system does
// not know that version, and refuses the library. Most of these are new versions of old functions: glibc 2.34 moved
// threads into libc.so.6, 2.33 made `stat` a function. Scripts/library leads the calls of each function NAME that is
// here as __wrap_NAME to it (`--wrap`), and from here they go on to the version that the older system has, too.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Whether this system's glibc has new versions since 2.MINOR, and the older one, 2.CONCOURSE_GLIBC_MINOR, does not.
#define NEWER_SINCE(minor) (CONCOURSE_GLIBC_MINOR < (minor) && __GLIBC_PREREQ(2, minor))
#define HIDDEN __attribute__((visibility("hidden")))

// The first version of a function depends on the processor: glibc has been there for arm64 since 2.17.
#if defined(__x86_64__)
#define JUMP "jmp "
#define PLT "@PLT"
#define FIRST(version) version
#elif defined(__aarch64__)
#define JUMP "b "
#define PLT ""
#define FIRST(version) "2.17"
#endif

#define FUNCTION_SINCE(name, version)                                                 \
  __asm__(".pushsection .text." #name ", \"ax\", %progbits\n"                         \
          ".symver older_" #name ", " #name "@GLIBC_" FIRST(version) "\n"             \
          ".globl __wrap_" #name "\n.hidden __wrap_" #name "\n.type __wrap_" #name ", %function\n" \
          "__wrap_" #name ": " JUMP "older_" #name PLT "\n.popsection\n")
#define FUNCTION(name) FUNCTION_SINCE(name, "2.2.5")

#if NEWER_SINCE(35)
FUNCTION(hypotf);

// libgcc asks the loader for the unwinding tables of an object, and gcc 12 and later know no other way. Only exceptions
// inside of the library come here, since libgcc is part of it: the program's own use the program's libgcc.
struct search {
  ElfW(Addr) address;
  struct dl_find_object *found;
};

static int look_at(struct dl_phdr_info *object, size_t size, void *context) {
  (void)size;
  struct search *search = context;
  struct dl_find_object found = {0};
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &object->dlpi_phdr[i];
    char *start = (char *)(object->dlpi_addr + part->p_vaddr);
    if (part->p_type == PT_GNU_EH_FRAME) found.dlfo_eh_frame = start;
    if (part->p_type == PT_LOAD && search->address - (ElfW(Addr))start < part->p_memsz) {
      found.dlfo_map_start = start;
      found.dlfo_map_end = start + part->p_memsz;
    }
  }
  if (found.dlfo_map_start == NULL || found.dlfo_eh_frame == NULL) return 0;
  *search->found = found;
  return 1;
}

HIDDEN int __wrap__dl_find_object(void *address, struct dl_find_object *found) {
  struct search search = {(ElfW(Addr))address, found};
  return dl_iterate_phdr(look_at, &search) == 1 ? 0 : -1;
}
#endif

#if NEWER_SINCE(34)
FUNCTION(dladdr);
FUNCTION(dlerror);
FUNCTION(dlopen);
FUNCTION(dlsym);
FUNCTION(pthread_attr_getstacksize);
FUNCTION(pthread_attr_setstacksize);
FUNCTION(pthread_create);
FUNCTION(pthread_key_create);
FUNCTION(__pthread_key_create);
FUNCTION(pthread_once);
FUNCTION(pthread_setspecific);
FUNCTION_SINCE(pthread_setname_np, "2.12");
FUNCTION(sem_open);
#endif

#if NEWER_SINCE(33)
// The older ones are macros that call functions of other names. The kernel's structure is glibc's on both processors.
HIDDEN int __wrap_stat(const char *path, struct stat *status) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}
HIDDEN int __wrap_lstat(const char *path, struct stat *status) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
HIDDEN int __wrap_fstat(int descriptor, struct stat *status) { return (int)syscall(SYS_fstat, descriptor, status); }
#endif

#if NEWER_SINCE(32)
FUNCTION(pthread_sigmask);

// By this, the C++ library leaves out atomic instructions. Here it never does.
HIDDEN char __libc_single_threaded = 0;
#endif
