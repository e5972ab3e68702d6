// The file that the command reads: what the run must do, and what it did.

#include "exploring.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

extern char **environ;
struct concourse_exploring_header *explored_file;

static void *part(uint64_t offset) { return (char *)explored_file + offset; }

// The variable is removed in place: nothing is allocated, and the program's children do not inherit it.
static char *take_variable(void) {
  const char name[] = CONCOURSE_EXPLORING_VARIABLE "=";
  char *value = NULL, **kept = environ;
  if (!environ) return NULL;
  for (char **entry = environ; *entry; entry++) {
    if (strncmp(*entry, name, sizeof name - 1) == 0) value = *entry + sizeof name - 1;
    else *kept++ = *entry;
  }
  *kept = NULL;
  return value;
}

bool explore_open_file(void) {
  const char *path = take_variable();
  if (!path) return false;
  int file = (int)SYSTEM4(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
  if (file < 0) return false;
  struct stat status;
  void *memory = MAP_FAILED;
  if (fstat(file, &status) == 0 && (size_t)status.st_size >= sizeof *explored_file)
    memory = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  SYSTEM1(SYS_close, file);
  if (memory == MAP_FAILED) return false;
  if (explore_use_file(memory)) return true;
  munmap(memory, (size_t)status.st_size);
  return false;
}

bool explore_use_file(struct concourse_exploring_header *header) {
  if (header->magic != CONCOURSE_EXPLORING_MAGIC || header->version != CONCOURSE_EXPLORING_VERSION ||
      header->header_size != sizeof *header)
    return false;
  explored_file = header;
  return true;
}

void explore_count_anew(void) {
  struct concourse_exploring_header *file = explored_file;
  file->steps = file->choices = file->hash = file->made_count = file->event_count = 0;
}

// Frame pointers, as far as they lie in the stack of the thread and ascend. Code without them ends the list early.
uint16_t explore_frames(const struct explored *self, const void *place, uint64_t *frames) {
  uint16_t count = 0;
  // On another stack, of a signal handler, nothing says where it ends.
  const uintptr_t deepest = 64u << 20;
  if ((uintptr_t)place + deepest < self->stack_end) return 0;
  // The frame of an asynchronous function in Swift has bit 60 set.
  const uintptr_t asynchronous = 1ull << 60;
  uintptr_t frame = (uintptr_t)place & ~asynchronous;
  while (count < CONCOURSE_EXPLORING_FRAMES && frame && frame % 8 == 0 && frame + 16 <= self->stack_end) {
    const uintptr_t *words = (const uintptr_t *)frame;
    if (words[1] < 4096) break;
    frames[count++] = words[1];
    uintptr_t outer = words[0] & ~asynchronous;
    if (outer <= frame) break;
    frame = outer;
  }
  return count;
}

static void mix(uint64_t value) {
  explored_file->hash = (explored_file->hash ^ value) * 0x9E3779B97F4A7C15ull;
  explored_file->hash ^= explored_file->hash >> 29;
}

void explore_note(struct explored *self, uint16_t next, uint32_t choices, bool switched) {
  struct concourse_exploring_header *file = explored_file;
  uint64_t now = explore_now();
  bool waits = self->state != CONCOURSE_EXPLORING_RUNNABLE;
  file->virtual_time = now;
  mix((uint64_t)self->number << 48 | (uint64_t)next << 32 | (uint64_t)self->operation << 16 | (choices << 1 & 0xFFFF) | waits);
  // Real clocks differ in each run.
  if (!file->real_time) mix(now);
  if (switched) {
    if (file->made_count < file->made_capacity) {
      struct concourse_exploring_switch *made = part(file->made_offset);
      made[file->made_count] =
          (struct concourse_exploring_switch){.thread = self->number, .next = next, .point = self->points};
    }
    file->made_count++;
  }
  if (file->events_capacity == 0) return;
  struct concourse_exploring_event *events = part(file->events_offset);
  struct concourse_exploring_event *event = &events[file->event_count % file->events_capacity];
  event->time = now;
  event->object = self->object;
  event->point = self->points;
  event->thread = self->number;
  event->operation = self->operation;
  event->next = next;
  event->flags = (switched ? CONCOURSE_EXPLORING_SWITCHED : 0) | (waits ? CONCOURSE_EXPLORING_BLOCKS : 0);
  event->choices = choices;
  event->frame_count = file->wants_frames ? (uint8_t)explore_frames(self, self->place, event->frames) : 0;
  file->event_count++;
}

void explore_show(struct explored *thread) {
  struct concourse_exploring_thread *shown =
      (struct concourse_exploring_thread *)part(explored_file->threads_offset) + thread->number;
  shown->id = thread->id;
  shown->state = thread->state;
  shown->is_engine = thread->is_engine;
  shown->operation = thread->operation;
  shown->object = thread->object;
  shown->deadline = thread->deadline;
  shown->points = thread->points;
  shown->creator = thread->creator;
  // The stack of a thread that has ended is gone.
  if (explored_file->wants_frames && thread->state != CONCOURSE_EXPLORING_ENDED)
    shown->frame_count = explore_frames(thread, thread->place, shown->frames);
}
