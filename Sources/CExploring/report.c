// The thread sanitizer's report of a race (races.c), taken from its text: the two accesses go into the file that the command
// reads, and the run ends.

#include "exploring.h"

#include <fcntl.h>
#include <sys/mman.h>

/// What the sanitizer writes: a file in memory, above the descriptors of the program.
static int report_file = -1;
enum { REPORT_DESCRIPTOR = 1001, MOST_TEXT = 16384 };

static const char *find(const char *text, const char *wanted) {
  for (; *text; text++) {
    size_t length = 0;
    while (wanted[length] && text[length] == wanted[length]) length++;
    if (!wanted[length]) return text + length;
  }
  return NULL;
}

static uint64_t number(const char *text, unsigned base) {
  uint64_t value = 0;
  for (;; text++) {
    unsigned digit = *text >= 'a' ? (unsigned)(*text - 'a') + 10 : (unsigned)(*text - '0');
    if (digit >= base) return value;
    value = value * base + digit;
  }
}

/// An access is a line with its kind and its thread, and then a line for each frame: "#0 0x5555…".
static char *take_access(char *text, struct concourse_exploring_access *access) {
  char *end = text;
  while (*end && *end != '\n') end++;
  if (*end) *end++ = 0;
  access->writes = find(text, "rite of") || find(text, "odifying access");
  access->is_atomic = find(text, "tomic ") != NULL;
  const char *size = find(text, " of size "), *thread = find(text, "by thread T");
  access->size = size ? (uint32_t)number(size, 10) : 0;
  access->thread = thread ? (uint16_t)number(thread, 10) : 0;
  access->frame_count = 0;
  // Up to an empty line.
  while (*end && *end != '\n') {
    char *line = end;
    while (*end && *end != '\n') end++;
    if (*end) *end++ = 0;
    const char *address = find(line, " 0x");
    if (!find(line, "#") || !address) continue;
    if (access->frame_count < CONCOURSE_EXPLORING_FRAMES) access->frames[access->frame_count++] = number(address, 16);
  }
  return end;
}

// Called by the sanitizer, which has written its report and holds its own locks. So this is without the C library.
static void end_with_report(void) {
  static char text[MOST_TEXT];
  long size = explore_system(SYS_pread64, report_file, (long)text, sizeof text - 1, 0, 0, 0);
  if (size <= 0) return;
  text[size] = 0;
  const char *kind = find(text, "WARNING: ThreadSanitizer: ");
  char *next = text;
  int count = 0;
  while (kind && count < 2 && (next = (char *)find(next, "\n  "))) {
    if (*next == ' ' || !find(next, " at 0x")) continue;
    next = take_access(next, &explored_file->accesses[count++]);
  }
  if (count < 2) {
    // It cannot go on, for another reason.
    SYSTEM3(SYS_write, STDERR_FILENO, text, size);
    return;
  }
  struct explored *self = explored_self;
  explore_finish(CONCOURSE_EXPLORING_RACE, self ? self->number : 0, 0);
}

bool explore_prepare_report(void) {
  void (*set_callback)(void (*)(void)), (*set_file)(void *);
  *(void **)&set_callback = dlsym(RTLD_DEFAULT, "__sanitizer_set_death_callback");
  *(void **)&set_file = dlsym(RTLD_DEFAULT, "__sanitizer_set_report_fd");
  if (!set_callback || !set_file) return false;
  int file = (int)SYSTEM3(SYS_memfd_create, "report", MFD_CLOEXEC, 0);
  report_file = (int)SYSTEM3(SYS_fcntl, file, F_DUPFD_CLOEXEC, REPORT_DESCRIPTOR);
  SYSTEM1(SYS_close, file);
  if (report_file < 0) return false;
  set_file((void *)(intptr_t)report_file);
  set_callback(end_with_report);
  return true;
}
