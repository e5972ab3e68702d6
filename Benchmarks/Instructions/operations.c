// One operation, many times: operations ROW COUNT. Scripts/instructions counts the instructions of two counts, whose
// difference has nothing of the start and the end of the process.
#include <dispatch/dispatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void _Block_release(const void *);

static long count, left;
static dispatch_queue_t serial, other, concurrent, nested, global;
static dispatch_semaphore_t done;

static void nothing(void *context) { (void)context; }
static void end(void *context) { exit(0); }

static void hop(void *queue) {
  if (--left == 0) {
    dispatch_semaphore_signal(done);
  } else {
    dispatch_queue_t next = queue == serial ? other : serial;
    dispatch_async_f(next, next, hop);
  }
}

static void hops(void) {
  left = count;
  dispatch_async_f(serial, serial, hop);
  dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
}

static void async_to(dispatch_queue_t queue) {
  for (long i = 0; i < count; i++) dispatch_async_f(queue, NULL, nothing);
  dispatch_barrier_sync_f(queue, NULL, nothing);
}

static void async_serial(void) { async_to(serial); }
static void async_nested(void) { async_to(nested); }
static void async_concurrent(void) { async_to(concurrent); }

static void async_group(void) {
  dispatch_group_t group = dispatch_group_create();
  for (long i = 0; i < count; i++) dispatch_group_async_f(group, global, NULL, nothing);
  dispatch_group_wait(group, DISPATCH_TIME_FOREVER);
}

static void async_item(void) {
  for (long i = 0; i < count; i++) {
    dispatch_block_t item = dispatch_block_create(0, ^{});
    dispatch_async(serial, item);
    _Block_release((const void *)item);
  }
  dispatch_sync_f(serial, NULL, nothing);
}

static void sync_serial(void) { for (long i = 0; i < count; i++) dispatch_sync_f(serial, NULL, nothing); }
static void sync_nested(void) { for (long i = 0; i < count; i++) dispatch_sync_f(nested, NULL, nothing); }
static void sync_read(void) { for (long i = 0; i < count; i++) dispatch_sync_f(concurrent, NULL, nothing); }
static void sync_barrier(void) { for (long i = 0; i < count; i++) dispatch_barrier_sync_f(concurrent, NULL, nothing); }

// Readers that are admitted behind each other, and a writer for every eight.
static void readers_and_writer(void) {
  for (long i = 0; i < count; i++) {
    if (i % 8 == 0) {
      dispatch_barrier_async_f(concurrent, NULL, nothing);
    } else {
      dispatch_async_f(concurrent, NULL, nothing);
    }
  }
  dispatch_barrier_sync_f(concurrent, NULL, nothing);
}

static void create(void) { for (long i = 0; i < count; i++) dispatch_release(dispatch_queue_create("made", NULL)); }

static void semaphore(void) {
  for (long i = 0; i < count; i++) {
    dispatch_semaphore_signal(done);
    dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
  }
}

static void group(void) {
  dispatch_group_t group = dispatch_group_create();
  for (long i = 0; i < count; i++) {
    dispatch_group_enter(group);
    dispatch_group_leave(group);
  }
}

static void once(void) {
  static dispatch_once_t predicate;
  for (long i = 0; i < count; i++) dispatch_once_f(&predicate, NULL, nothing);
}

static void specific(void) {
  static int key;
  dispatch_queue_set_specific(serial, &key, &key, NULL);
  for (long i = 0; i < count; i++) (void)dispatch_queue_get_specific(serial, &key);
}

// Delayed submissions that are called off: timers that are set and removed.
static void after(void) {
  for (long i = 0; i < count; i++) {
    dispatch_block_t item = dispatch_block_create(0, ^{});
    dispatch_after(dispatch_time(DISPATCH_TIME_NOW, 3600 * (int64_t)NSEC_PER_SEC), serial, item);
    dispatch_block_cancel(item);
    _Block_release((const void *)item);
  }
  dispatch_sync_f(serial, NULL, nothing);
}

static void to_main(void *context);
static void to_global(void *context) { dispatch_async_f(dispatch_get_main_queue(), NULL, to_main); }
static void to_main(void *context) {
  if (--left == 0) exit(0);
  dispatch_async_f(global, NULL, to_global);
}

static void main_round_trip(void) {
  left = count;
  dispatch_async_f(global, NULL, to_global);
  dispatch_main();
}

// Each event of the pipe is read, and the next is written, by its handler.
static int ends[2];
static void read_event(void *context) {
  char byte;
  if (read(ends[0], &byte, 1) != 1 || --left == 0) exit(0);
  (void)!write(ends[1], "x", 1);
}

static void pipe_event(void) {
  left = count;
  if (pipe(ends) != 0 || write(ends[1], "x", 1) != 1) exit(1);
  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_READ, (uintptr_t)ends[0], 0, serial);
  dispatch_source_set_event_handler_f(source, read_event);
  dispatch_activate(source);
  dispatch_main();
}

// One item at a time, on a pool with so many workers, all others of which are idle.
static int workers;
static dispatch_semaphore_t met, go_on;
static void meet(void *context) {
  dispatch_semaphore_signal(met);
  dispatch_semaphore_wait(go_on, DISPATCH_TIME_FOREVER);
}
static void signal_done(void *context) { dispatch_semaphore_signal(done); }

static void one_of_many(void) {
  met = dispatch_semaphore_create(0);
  go_on = dispatch_semaphore_create(0);
  for (int i = 0; i < workers; i++) dispatch_async_f(global, NULL, meet);
  for (int i = 0; i < workers; i++) dispatch_semaphore_wait(met, DISPATCH_TIME_FOREVER);
  for (int i = 0; i < workers; i++) dispatch_semaphore_signal(go_on);
  for (long i = 0; i < count; i++) {
    dispatch_async_f(global, NULL, signal_done);
    dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
  }
}

int main(int arguments, char **argument) {
  static const struct {
    const char *name;
    void (*run)(void);
  } rows[] = {
      {"hop", hops}, {"async-serial", async_serial}, {"async-nested", async_nested},
      {"async-concurrent", async_concurrent}, {"async-group-global", async_group}, {"async-item", async_item},
      {"sync", sync_serial}, {"sync-nested", sync_nested}, {"sync-read", sync_read}, {"sync-barrier", sync_barrier},
      {"readers-and-writer", readers_and_writer}, {"create-release", create}, {"semaphore", semaphore}, {"group", group},
      {"once", once}, {"specific", specific}, {"after-cancelled", after}, {"main-round-trip", main_round_trip},
      {"pipe-event", pipe_event}, {"one-of", one_of_many},
  };
  if (arguments != 3) return 2;
  count = atol(argument[2]);
  serial = dispatch_queue_create("serial", NULL);
  other = dispatch_queue_create("other", NULL);
  concurrent = dispatch_queue_create("concurrent", DISPATCH_QUEUE_CONCURRENT);
  nested = dispatch_queue_create_with_target("nested", NULL, serial);
  global = dispatch_get_global_queue(0, 0);
  done = dispatch_semaphore_create(0);
  // Behind the name, the pretended machine.
  char *topology = strchr(argument[1], '@');
  if (topology) {
    int shards = atoi(topology + 1), processors = atoi(strchr(topology, 'x') + 1);
    workers = shards * processors;
    *topology = 0;
  }
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (strcmp(argument[1], rows[i].name) != 0) continue;
    rows[i].run();
    end(NULL);
  }
  return 2;
}
