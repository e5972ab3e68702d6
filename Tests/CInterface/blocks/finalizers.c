// What has a context may use it in all handlers: the finalizer waits for them, also when they are blocks.

#include "check.h"

#include <unistd.h>

typedef struct {
  event finalized;
  event started, may_end, handled;
  bool is_gone;
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
  __atomic_store_n(&context->is_gone, true, __ATOMIC_SEQ_CST);
  event_happens(&context->finalized);
}

static bool is_gone(belongings *context) { return __atomic_load_n(&context->is_gone, __ATOMIC_SEQ_CST); }

static dispatch_source_t source_with(belongings *context, dispatch_queue_t queue) {
  belongings_init(context);
  dispatch_source_t source = dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 0, 0, queue);
  dispatch_set_context(source, context);
  dispatch_set_finalizer_f(source, finalize);
  dispatch_source_set_event_handler(source, ^{
    event_happens(&context->started);
    event_wait(&context->may_end);
    check(!is_gone(context));
    event_happens(&context->handled);
  });
  return source;
}

// Released while its handler runs.
static void released(dispatch_queue_t queue) {
  belongings context;
  dispatch_source_t source = source_with(&context, queue);
  dispatch_activate(source);
  dispatch_source_merge_data(source, 1);
  event_wait(&context.started);
  dispatch_release(source);
  event_happens(&context.may_end);
  event_wait(&context.handled);
  event_wait(&context.finalized);
}

// Cancelled and released while its handler runs: the cancel handler is still to come.
static void cancelled(dispatch_queue_t queue) {
  belongings context;
  belongings *reference = &context;
  dispatch_source_t source = source_with(&context, queue);
  dispatch_source_set_cancel_handler(source, ^{
    check(!is_gone(reference));
  });
  dispatch_activate(source);
  dispatch_source_merge_data(source, 1);
  event_wait(&context.started);
  dispatch_source_cancel(source);
  dispatch_release(source);
  event_happens(&context.may_end);
  event_wait(&context.finalized);
}

// Released before it has registered.
static void registered(dispatch_queue_t queue) {
  belongings context;
  belongings *reference = &context;
  dispatch_source_t source = source_with(&context, queue);
  dispatch_source_set_registration_handler(source, ^{
    event_happens(&reference->started);
    event_wait(&reference->may_end);
    check(!is_gone(reference));
  });
  dispatch_activate(source);
  event_wait(&context.started);
  dispatch_release(source);
  event_happens(&context.may_end);
  event_wait(&context.finalized);
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
  dispatch_semaphore_wait(cleaned_up, DISPATCH_TIME_FOREVER);
  dispatch_release(cleaned_up);
  close(ends[0]);
  close(ends[1]);
}

int main(void) {
  dispatch_queue_t serial = dispatch_queue_create("serial", NULL);
  dispatch_queue_t shared = dispatch_get_global_queue(0, 0);
  for (int round = 0; round < 50; round++) {
    released(serial);
    released(shared);
    cancelled(serial);
    cancelled(shared);
    registered(serial);
    registered(shared);
    channel(serial);
    channel(shared);
  }
  dispatch_release(serial);
  return finish();
}
