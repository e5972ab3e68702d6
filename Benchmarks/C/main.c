// The C interface, row by row. One binary for whichever libdispatch.so the loader is told to take; it
// answers to --list, --row NAME [--quick] and --library in the format of the Swift programs.
#include "bench.h"

#include <stdio.h>
#include <string.h>

static const struct row {
  const char *name;
  row_function *measure;
  long count;
  const char *question;
} rows[] = {
    {"async-f", async_f, 1000000, "one thread asyncs onto a serial queue, until all have run"},
    {"async-block", async_block, 1000000, "the same with blocks, which are copied"},
    {"async-block-object", async_block_object, 200000, "make a block object, async it, release it"},
    {"global-async-f", global_async_f, 500000, "async onto a global queue, until all have run"},
    {"round-trip", round_trip, 20000, "async_f onto a serial queue, its task signals, wait"},
    {"sync-f", sync_f, 5000000, "enter and leave an idle serial queue"},
    {"sync-block", sync_block, 5000000, "the same with a block"},
    {"sync-f-two-threads", sync_f_two_threads, 200000, "two threads on two cores enter one serial queue"},
    {"concurrent-sync-f", concurrent_sync_f, 5000000, "enter the shared side of a concurrent queue"},
    {"barrier-async-f", barrier_async_f, 500000, "barriers asynced onto a concurrent queue"},
    {"barrier-sync-f", barrier_sync_f, 2000000, "enter an idle concurrent queue as a barrier"},
    {"apply-f", apply_f, 10000000, "parallel loop that does nothing"},
    {"apply-block", apply_block, 10000000, "the same with a block"},
    {"group-async-f", group_async_f, 300000, "fan-out of a group onto a global queue, wait"},
    {"group-async-block", group_async_block, 300000, "the same with blocks"},
    {"group-enter-leave", group_enter_leave, 5000000, "enter, then leave an empty group"},
    {"group-notify-f", group_notify_f, 200000, "an empty group notifies a serial queue"},
    {"semaphore-signal-wait", semaphore_signal_wait, 10000000, "signal, then wait: no thread blocks"},
    {"semaphore-ping-pong", semaphore_ping_pong, 20000, "two threads on two cores wake one another"},
    {"hop-f", hop_f, 300000, "each task asyncs the next onto the other of two serial queues"},
    {"hop-block", hop_block, 300000, "the same with blocks"},
    {"after-f", after_f, 100000, "dispatch_after_f 1 ms ahead, until all have run"},
    {"once-f", once_f, 50000000, "dispatch_once_f that is done, by the library's function"},
    {"queue-life", queue_life, 500000, "a labelled serial queue, made and released"},
    {"retain-release", retain_release, 10000000, "retain and release a queue"},
    {"get-specific", get_specific, 5000000, "dispatch_get_specific within a task of the queue"},
    {"pipe-source", pipe_source, 10000, "write to a pipe, a read source's handler reads and signals"},
    {"data-add-source", data_add_source, 1000000, "merge into a data-add source, until all is handled"},
    {"timer-source", timer_source, 5000, "a timer source fires and is set again by its handler"},
    {"timer-source-life", timer_source_life, 50000, "a timer source an hour ahead, made and cancelled"},
    {"data-concat", data_concat, 500000, "append a piece to a data object of up to 64 pieces"},
    {"data-apply", data_apply, 5000000, "visit a region of a data object of 64 pieces"},
    {"data-map", data_map, 50000, "map a data object of 64 pieces, 64 bytes each"},
};

int main(int count, char **words) {
  const char *name = "";
  int divisor = 1, list = 0;
  for (int index = 1; index < count; index++) {
    if (strcmp(words[index], "--list") == 0) list = 1;
    else if (strcmp(words[index], "--quick") == 0) divisor = 10;
    else if (strcmp(words[index], "--row") == 0 && index + 1 < count) name = words[++index];
    else if (strcmp(words[index], "--library") == 0) return bench_print_dispatch_libraries();
  }
  for (size_t index = 0; index < sizeof rows / sizeof *rows; index++) {
    const struct row *row = &rows[index];
    if (list) printf("%s\tns\t%s\n", row->name, row->question);
    if (strcmp(row->name, name) != 0) continue;
    struct measurement result = row->measure(row->count / divisor);
    printf("%s %f %ld %ld\n", row->name, result.value, result.operations, result.check);
    return 0;
  }
  if (list) return 0;
  fprintf(stderr, "usage: --list | --library | --row NAME [--quick]\n");
  return 64;
}
