// What only the shared library has: it takes itself out of the environment of a program that `concourse run`
// has started, so that the program's children are not switched along with it.
//
// `concourse run` puts the library into LD_PRELOAD and sets CONCOURSE_RUN_PRELOAD, whose value is the entry
// that the environment had before, "LD_PRELOAD=..." in full, or nothing where it had none. The library's
// constructor puts that entry back and removes the variable. With `--children` the variable is not set, and
// nothing is touched.

#include <stddef.h>
#include <string.h>

extern char **environ;

// By this section `concourse run` knows the library from another libdispatch.so, also when it is stripped
// of its symbols. A note: name, type 1 and, as its content, the version of the agreement described above.
struct note {
  unsigned int nameSize, contentSize, type;
  char name[12];
  unsigned int agreement;
};
__attribute__((used, section(".note.concourse"), aligned(4)))
static const struct note concourseNote = {sizeof "Concourse", sizeof(unsigned int), 1, "Concourse", 1};

static const char loaderEntry[] = "LD_PRELOAD=";
static const char ownEntry[] = "CONCOURSE_RUN_PRELOAD=";

static int startsWith(const char *entry, const char *name, size_t length) {
  return strncmp(entry, name, length) == 0;
}

// The array is changed in place rather than by setenv: nothing is allocated, the entries keep their order,
// and `main`, whose third argument is this same array, sees what getenv sees. Programs that replace or clear
// their environment do so later. 101 is the first priority that is free to use: before the library's other
// constructors, and before any of the program's.
__attribute__((constructor(101)))
static void leavePreload(void) {
  if (environ == NULL) return;
  char *original = NULL;
  for (char **entry = environ; *entry != NULL; entry++) {
    if (startsWith(*entry, ownEntry, sizeof ownEntry - 1)) original = *entry + sizeof ownEntry - 1;
  }
  if (original == NULL) return;
  // A value that is no such entry was not written by `concourse run`: the loader's entry only goes.
  if (!startsWith(original, loaderEntry, sizeof loaderEntry - 1)) original = NULL;
  char **kept = environ;
  for (char **entry = environ; *entry != NULL; entry++) {
    if (startsWith(*entry, ownEntry, sizeof ownEntry - 1)) continue;
    if (startsWith(*entry, loaderEntry, sizeof loaderEntry - 1)) {
      if (original == NULL) continue;
      *kept++ = original;
      original = NULL;
      continue;
    }
    *kept++ = *entry;
  }
  *kept = NULL;
}
