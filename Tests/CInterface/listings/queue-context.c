// Data of a queue, and a function that cleans up after it.

#include "listing.h"
#include <string.h>

struct context {
  char *name;
  int entries;
  dispatch_semaphore_t finished;
};

static int finalizations = 0;
static int entries_seen = 0;
static bool name_seen = false;

// Called once with the context, when the queue has been released by everybody and all its items have run.
static void finalize(void *argument) {
  struct context *context = argument;
  dispatch_semaphore_t finished = context->finished;
  finalizations += 1;
  entries_seen = context->entries;
  name_seen = strcmp(context->name, "journal") == 0;
  free(context->name);
  free(context);
  dispatch_semaphore_signal(finished);
}

// The code that uses the queue need not know about the context.
static dispatch_queue_t make_queue(const char *name, dispatch_semaphore_t finished) {
  struct context *context = malloc(sizeof *context);
  context->name = strdup(name);
  context->entries = 0;
  context->finished = finished;
  dispatch_queue_t queue = dispatch_queue_create("org.concourse.guide.context", NULL);
  dispatch_set_context(queue, context);
  dispatch_set_finalizer_f(queue, finalize);
  return queue;
}

static void add_entry(void *argument) {
  struct context *context = argument;
  context->entries += 1;
}

int main(void) {
  dispatch_semaphore_t finished = dispatch_semaphore_create(0);
  dispatch_queue_t queue = make_queue("journal", finished);
  dispatch_retain(queue);
  dispatch_async_f(queue, dispatch_get_context(queue), add_entry);
  dispatch_release(queue);
  dispatch_sync(queue, ^{});
  CHECK(finalizations == 0, "finalized while there was a reference");
  dispatch_async_f(queue, dispatch_get_context(queue), add_entry);
  // The last reference but the queue's own to itself, as long as it has an item.
  dispatch_release(queue);
  CHECK(dispatch_semaphore_wait(finished, SOON) == 0, "never finalized");
  CHECK(finalizations == 1, "finalized %d times", finalizations);
  CHECK(name_seen, "the finalizer was called with something else");
  CHECK(entries_seen == 2, "the context counted %d entries instead of 2", entries_seen);
  printf("cleaned up after %d entries\n", entries_seen);
  dispatch_release(finished);
  return 0;
}
