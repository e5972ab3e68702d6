// Runs a program once under the exploring library, without the command, and prints what became of it in one line.
//
//   launcher [--random|--pct|--pos SEED] [--depth N] [--expect STEPS] [--limit STEPS] [--real] [--follow LIST]
//            [--events] [--times N | --seeds N] LIBRARY PROGRAM ARGUMENT...
//
// A list is THREAD:POINT:NEXT,...; the line ends with the switches made, if there are at most 40. --times N runs the
// program N times, and prints the lines that differ, each with how often it came. --seeds N tries N seeds until a run
// does not end with status 0.

#define _GNU_SOURCE
#include "concourse_exploring.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FOLLOWED = 1024, MOST_MADE = 1 << 16, MOST_EVENTS = 1 << 14, LIMIT_SECONDS = 100 };
static struct concourse_exploring_header asked;
static struct concourse_exploring_switch followed[MOST_FOLLOWED];
static uint64_t followed_count;
static int shows_events;

static void follow(char *list) {
  for (char *entry = strtok(list, ","); entry && followed_count < MOST_FOLLOWED; entry = strtok(NULL, ",")) {
    unsigned thread, point, next;
    if (sscanf(entry, "%u:%u:%u", &thread, &point, &next) != 3) exit(2);
    followed[followed_count++] = (struct concourse_exploring_switch){(uint16_t)thread, (uint16_t)next, point};
  }
}

static void show_events(const struct concourse_exploring_header *file) {
  const struct concourse_exploring_event *events = (const void *)((const char *)file + file->events_offset);
  uint64_t first = file->event_count > file->events_capacity ? file->event_count - file->events_capacity : 0;
  for (uint64_t i = first; i < file->event_count; i++) {
    const struct concourse_exploring_event *event = &events[i % file->events_capacity];
    const char *name = concourse_exploring_operation_name(event->operation);
    fprintf(stderr, "%6lu %12lu ns  thread %u.%u  %-24s %12lx  %s> %u of %u", (unsigned long)i, (unsigned long)event->time,
            event->thread, event->point, name ? name : "?", (unsigned long)event->object,
            event->flags & CONCOURSE_EXPLORING_BLOCKS ? "waits " : "", event->next, event->choices);
    if (event->flags & CONCOURSE_EXPLORING_SWITCHED) fprintf(stderr, " switched");
    for (int k = 0; k < event->frame_count; k++) fprintf(stderr, " %lx", (unsigned long)event->frames[k]);
    fputc('\n', stderr);
  }
}

/// Runs the program; returns what became of it.
static char *run(const char *library, char **arguments) {
  char path[] = "/dev/shm/explore-XXXXXX";
  int descriptor = mkstemp(path);
  if (descriptor < 0) strcpy(path, "/tmp/explore-XXXXXX"), descriptor = mkstemp(path);
  struct concourse_exploring_header header = asked;
  uint64_t size = concourse_exploring_lay_out(&header, followed_count, MOST_MADE, shows_events ? MOST_EVENTS : 0);
  header.wants_frames = (uint32_t)shows_events;
  if (descriptor < 0 || ftruncate(descriptor, (off_t)size) != 0) exit(2);
  struct concourse_exploring_header *file = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  *file = header;
  memcpy((char *)file + file->follow_offset, followed, followed_count * sizeof *followed);

  pid_t child = fork();
  if (child == 0) {
    personality(ADDR_NO_RANDOMIZE);
    setenv("LD_PRELOAD", library, 1);
    setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1);
    setenv("SWIFT_BACKTRACE", "enable=no", 1);
    setenv("CONCOURSE_RUN_PRELOAD", "", 1);
    setenv(CONCOURSE_EXPLORING_VARIABLE, path, 1);
    execvp(arguments[0], arguments);
    perror(arguments[0]);
    _exit(127);
  }
  int status = 0;
  time_t start = time(NULL);
  for (int i = 0; waitpid(child, &status, WNOHANG) == 0; i++) {
    bool is_late = time(NULL) - start > LIMIT_SECONDS;
    if (__atomic_load_n(&file->outcome, __ATOMIC_ACQUIRE) > CONCOURSE_EXPLORING_RUNNING || is_late) {
      if (is_late) fprintf(stderr, "launcher: killed after %d s\n", LIMIT_SECONDS);
      kill(child, SIGKILL);
    }
    usleep(i < 100 ? 100 : 1000);
  }
  unlink(path);
  close(descriptor);

  static const char *const outcomes[] = {"not started", "ended", "deadlock", "hang", "step limit", "spinning",
                                         "blocked unseen", "too many threads", "waits for outside", "race"};
  char *line = NULL;
  size_t length;
  FILE *out = open_memstream(&line, &length);
  fprintf(out, "%s", outcomes[file->outcome]);
  if (file->outcome == CONCOURSE_EXPLORING_RUNNING && WIFEXITED(status)) fprintf(out, " with status %d", WEXITSTATUS(status));
  if (file->outcome == CONCOURSE_EXPLORING_RUNNING && WIFSIGNALED(status)) fprintf(out, " with signal %d", WTERMSIG(status));
  if (file->outcome > CONCOURSE_EXPLORING_STEP_LIMIT)
    fprintf(out, " in thread %u, detail %lu", file->culprit, (unsigned long)file->detail);
  fprintf(out, ", %u threads, steps %lu, choices %lu, hash %016lx, time %lu us, switches %lu, followed %lu, skipped %lu",
          file->thread_count, (unsigned long)file->steps, (unsigned long)file->choices, (unsigned long)file->hash,
          (unsigned long)(file->virtual_time / 1000), (unsigned long)file->made_count, (unsigned long)file->followed_count,
          (unsigned long)file->skipped_count);
  const struct concourse_exploring_switch *made = (const void *)((const char *)file + file->made_offset);
  if (file->made_count > 0 && file->made_count <= 40) {
    for (uint64_t i = 0; i < file->made_count; i++)
      fprintf(out, "%s%u:%u:%u", i ? "," : " ", made[i].thread, made[i].point, made[i].next);
  }
  fclose(out);
  if (shows_events) show_events(file);
  munmap(file, size);
  return line;
}

int main(int count, char **arguments) {
  enum { MOST_LINES = 64 };
  uint64_t seeds = 0;
  int times = 1, place = 1, line_count = 0, counts[MOST_LINES] = {0};
  char *lines[MOST_LINES];
  for (; place < count && strncmp(arguments[place], "--", 2) == 0; place++) {
    const char *option = arguments[place];
    if (strcmp(option, "--real") == 0) { asked.real_time = 1; continue; }
    if (strcmp(option, "--events") == 0) { shows_events = 1; continue; }
    char *value = arguments[++place];
    if (!value) return 2;
    uint64_t number = strtoull(value, NULL, 10);
    if (strcmp(option, "--random") == 0) asked.strategy = CONCOURSE_EXPLORING_RANDOM, asked.seed = number;
    else if (strcmp(option, "--pct") == 0) asked.strategy = CONCOURSE_EXPLORING_PCT, asked.seed = number;
    else if (strcmp(option, "--pos") == 0) asked.strategy = CONCOURSE_EXPLORING_POS, asked.seed = number;
    else if (strcmp(option, "--depth") == 0) asked.depth = (uint32_t)number;
    else if (strcmp(option, "--expect") == 0) asked.expected_steps = number;
    else if (strcmp(option, "--limit") == 0) asked.step_limit = number;
    else if (strcmp(option, "--seeds") == 0) seeds = number;
    else if (strcmp(option, "--times") == 0) times = (int)number;
    else if (strcmp(option, "--follow") == 0) follow(value);
    else return 2;
  }
  if (place + 2 > count) return 2;
  for (uint64_t i = 1; i <= seeds; i++, asked.seed++) {
    char *line = run(arguments[place], arguments + place + 1);
    bool is_fine = strncmp(line, "ended with status 0,", 20) == 0;
    if (!is_fine) printf("run %lu: %s\n", (unsigned long)i, line);
    free(line);
    if (!is_fine) return 1;
  }
  if (seeds) {
    printf("%lu runs ended with status 0\n", (unsigned long)seeds);
    return 0;
  }
  for (int i = 0; i < times; i++) {
    char *line = run(arguments[place], arguments + place + 1);
    int known = 0;
    while (known < line_count && strcmp(lines[known], line) != 0) known++;
    if (known == line_count && line_count < MOST_LINES) lines[line_count++] = line;
    if (known < MOST_LINES) counts[known]++;
  }
  for (int i = 0; i < line_count; i++) {
    if (times > 1) printf("%d times: ", counts[i]);
    puts(lines[i]);
  }
  return 0;
}
