// Removes the library from the environment of a program that `concourse run` started, so that the program's children do
// not inherit it. Only the shared library contains this file.
//
// `concourse run` adds the library to LD_PRELOAD and sets CONCOURSE_RUN_PRELOAD to the previous entry, "LD_PRELOAD=..."
// in full, or to nothing if there was none. The library's constructor restores that entry and removes the variable.
// With `--children` the variable is not set, and the environment stays as it is.

#include <stddef.h>
#include <string.h>

extern char **environ;

// This section identifies the library to `concourse run`, even after its symbols are stripped. It is a note: a name,
// type 1, and the version of the protocol above.
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

// The array is changed in place rather than by setenv: nothing is allocated, the entries keep their order, and `main`,
// whose third argument is this array, sees what getenv sees. Programs replace or clear their environment only later.
// Priority 101 is the first one free to use: it runs before the library's other constructors and before the program's.
__attribute__((constructor(101)))
static void leavePreload(void) {
  if (environ == NULL) return;
  char *original = NULL;
  for (char **entry = environ; *entry != NULL; entry++) {
    if (startsWith(*entry, ownEntry, sizeof ownEntry - 1)) original = *entry + sizeof ownEntry - 1;
  }
  if (original == NULL) return;
  // `concourse run` writes only such entries. For any other value, the loader's entry is removed without a replacement.
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
