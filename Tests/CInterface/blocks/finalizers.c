// All handlers of an object may use its context: the finalizer waits for them, also when they are blocks.
// Statements: S102, S135.

#include "check.h"

#include <Block.h>
#include <unistd.h>

typedef struct {
  event finalized;
  event started, may_end, handled;
  bool is_gone;
  // The label of the queue on which the finalizer ran.
  const char *place;
} belongings;

static void belongings_init(belongings *context) {
  event_init(&context->finalized);
  event_init(&context->started);
  event_init(&context->may_end);
  event_init(&context->handled);
  context->is_gone = false;
}

static void finalize(void *argument) {
  belongings *context = argument;
  context->place = dispatch_queue_get_label(DISPATCH_CURRENT_QUEUE_LABEL);
  __atomic_store_n(&context->is_gone, true, __ATOMIC_SEQ_CST);
  event_happens(&context->finalized);
}

static bool is_gone(belongings *context) { return __atomic_load_n(&context->is_gone, __ATOMIC_SEQ_CST); }

static dispatch_source_t source_with(belongings *context, dispatch_queue_t queue) {
  belongings_init(context);
  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, queue);
  dispatch_set_context(source, context);
  dispatch_set_finalizer_f(source, finalize);
  return source;
}

// The body of a handler: it runs until it is released, and then uses the context.
static dispatch_block_t handler_with(belongings *context) {
  return Block_copy(^{
    event_happens(&context->started);
    event_wait(&context->may_end);
    check(!is_gone(context));
  });
}

// Releases a source while its handler runs.
static void give_back(dispatch_source_t source, belongings *context, dispatch_block_t handler, bool cancels) {
  event_wait(&context->started);
  if (cancels) dispatch_source_cancel(source);
  dispatch_release(source);
  event_happens(&context->may_end);
  event_wait(&context->finalized);
  Block_release(handler);
}

// Released while its handler runs; if it is cancelled, the cancel handler is still due.
static void handled(dispatch_queue_t queue, bool cancels) {
  belongings context;
  belongings *reference = &context;
  dispatch_source_t source = source_with(&context, queue);
  dispatch_block_t handler = handler_with(&context);
  dispatch_source_set_event_handler(source, handler);
  dispatch_source_set_cancel_handler(source, ^{
    check(cancels && !is_gone(reference));
  });
  dispatch_activate(source);
  dispatch_source_merge_data(source, 1);
  give_back(source, &context, handler, cancels);
}

// Released while the registration handler runs.
static void registered(dispatch_queue_t queue) {
  belongings context;
  dispatch_source_t source = source_with(&context, queue);
  dispatch_block_t handler = handler_with(&context);
  dispatch_source_set_registration_handler(source, handler);
  dispatch_activate(source);
  give_back(source, &context, handler, false);
}

// A channel that is released while an operation waits for bytes, and a barrier for the operation.
static void channel(dispatch_queue_t queue) {
  belongings context;
  belongings *reference = &context;
  belongings_init(&context);
  int ends[2];
  check_equal(pipe(ends), 0);
  dispatch_semaphore_t cleaned_up = dispatch_semaphore_create(0);
  dispatch_io_t channel = dispatch_io_create(DISPATCH_IO_STREAM, ends[0], queue, ^(int error) {
    check_equal(error, 0);
    dispatch_semaphore_signal(cleaned_up);
  });
  dispatch_set_context(channel, &context);
  dispatch_set_finalizer_f(channel, finalize);
  dispatch_set_target_queue(channel, queue);
  dispatch_io_read(channel, 0, 1, queue, ^(bool done, dispatch_data_t data, int error) {
    (void)data;
    check_equal(error, 0);
    check(!is_gone(reference));
    if (done) event_happens(&reference->handled);
  });
  dispatch_io_barrier(channel, ^{
    check(!is_gone(reference));
    event_happens(&reference->started);
  });
  dispatch_release(channel);
  check_equal(write(ends[1], "x", 1), 1);
  event_wait(&context.handled);
  event_wait(&context.started);
  event_wait(&context.finalized);
  check_text(context.place, dispatch_queue_get_label(queue));
  dispatch_semaphore_wait(cleaned_up, DISPATCH_TIME_FOREVER);
  dispatch_release(cleaned_up);
  close(ends[0]);
  close(ends[1]);
}

static event destroyed;
static const char *destructor_place;

static dispatch_data_t destroyed_on(dispatch_queue_t queue, belongings *context) {
  static char bytes[100];
  belongings_init(context);
  event_init(&destroyed);
  destructor_place = "not run";
  dispatch_data_t data = dispatch_data_create(bytes, sizeof bytes, queue, ^{
    destructor_place = dispatch_queue_get_label(DISPATCH_CURRENT_QUEUE_LABEL);
    event_happens(&destroyed);
  });
  dispatch_set_context(data, context);
  dispatch_set_finalizer_f(data, finalize);
  return data;
}

static void expect_places(dispatch_data_t data, belongings *context, const char *destructor, const char *finalizer) {
  dispatch_release(data);
  event_wait(&destroyed);
  event_wait(&context->finalized);
  check_text(destructor_place, destructor);
  check_text(context->place, finalizer);
}

// The queue of data's creation is its target, and another one can take its place.
static void data(void) {
  dispatch_queue_t first = dispatch_queue_create("first", NULL), second = dispatch_queue_create("second", NULL);
  const char *shared = dispatch_queue_get_label(dispatch_get_global_queue(0, 0));
  belongings context;
  expect_places(destroyed_on(first, &context), &context, "first", "first");
  expect_places(destroyed_on(NULL, &context), &context, shared, shared);
  dispatch_data_t changed = destroyed_on(first, &context);
  dispatch_set_target_queue(changed, second);
  expect_places(changed, &context, "second", "second");
  changed = destroyed_on(NULL, &context);
  dispatch_set_target_queue(changed, second);
  expect_places(changed, &context, "second", "second");
  changed = destroyed_on(first, &context);
  dispatch_set_target_queue(changed, NULL);
  expect_places(changed, &context, shared, shared);

  // Without a destructor of the program's own.
  belongings_init(&context);
  dispatch_data_t copy = dispatch_data_create("bytes", 5, first, DISPATCH_DATA_DESTRUCTOR_DEFAULT);
  dispatch_set_context(copy, &context);
  dispatch_set_finalizer_f(copy, finalize);
  dispatch_release(copy);
  event_wait(&context.finalized);
  check_text(context.place, "first");

  // A part has its own target, and its whole keeps the other.
  dispatch_data_t whole = destroyed_on(first, &context);
  belongings of_part;
  belongings_init(&of_part);
  dispatch_data_t part = dispatch_data_create_subrange(whole, 1, 10);
  dispatch_set_context(part, &of_part);
  dispatch_set_finalizer_f(part, finalize);
  dispatch_set_target_queue(part, second);
  dispatch_release(part);
  event_wait(&of_part.finalized);
  check_text(of_part.place, "second");
  expect_places(whole, &context, "first", "first");
  dispatch_set_target_queue(dispatch_data_empty, second);
  dispatch_release(first);
  dispatch_release(second);
}

int main(void) {
  data();
  dispatch_queue_t serial = dispatch_queue_create("serial", NULL);
  dispatch_queue_t shared = dispatch_get_global_queue(0, 0);
  for (int round = 0; round < 50; round++) {
    handled(serial, false);
    handled(shared, false);
    handled(serial, true);
    handled(shared, true);
    registered(serial);
    registered(shared);
    channel(serial);
    channel(shared);
  }
  dispatch_release(serial);
  return finish();
}
