// Sources whose events are the program's own, and the life of a source: creation, handlers, cancellation.
// Statements: S94-S100, S102, S103, S106, S107.

#include "check.h"

typedef struct {
  dispatch_source_t source;
  event handled, cancelled, registered;
  uintptr_t data;
  int calls, cancels, registrations;
  bool on_queue;
} watch;

static char key;

static void handle(void *context) {
  watch *w = context;
  w->data = dispatch_source_get_data(w->source);
  w->calls++;
  w->on_queue = dispatch_get_specific(&key) == (void *)&key;
  event_happens(&w->handled);
}

static void handle_cancel(void *context) {
  watch *w = context;
  w->cancels++;
  event_happens(&w->cancelled);
}

static void handle_registration(void *context) {
  watch *w = context;
  w->registrations++;
  check_that(w->calls == 0, "registered before any event", __FILE__, __LINE__);
  event_happens(&w->registered);
}

static watch *make(dispatch_source_type_t type, dispatch_queue_t queue) {
  watch *w = calloc(1, sizeof *w);
  event_init(&w->handled);
  event_init(&w->cancelled);
  event_init(&w->registered);
  w->source = dispatch_source_create(type, 0, 0, queue);
  check(w->source != NULL);
  dispatch_set_context(w->source, w);
  dispatch_source_set_event_handler_f(w->source, handle);
  dispatch_source_set_cancel_handler_f(w->source, handle_cancel);
  dispatch_source_set_registration_handler_f(w->source, handle_registration);
  return w;
}

static void end(watch *w) {
  dispatch_source_cancel(w->source);
  dispatch_source_cancel(w->source);
  check(dispatch_source_testcancel(w->source) != 0);
  event_wait(&w->cancelled);
  check_equal(w->cancels, 1);
  dispatch_release(w->source);
  free(w);
}

// The registration handler has returned too, so a suspension now holds.
static void is_registered(watch *w, dispatch_queue_t queue) {
  event_wait(&w->registered);
  drain(queue);
}

static uintptr_t merge(dispatch_source_type_t type, uintptr_t first, uintptr_t second, dispatch_queue_t queue) {
  watch *w = make(type, queue);
  dispatch_activate(w->source);
  is_registered(w, queue);
  // Events are merged while it is suspended.
  dispatch_suspend(w->source);
  dispatch_source_merge_data(w->source, first);
  dispatch_source_merge_data(w->source, second);
  dispatch_resume(w->source);
  event_wait(&w->handled);
  uintptr_t data = w->data;
  check_equal(w->calls, 1);
  check(w->on_queue);
  end(w);
  return data;
}

static void merging(dispatch_queue_t queue) {
  check_equal(merge(DISPATCH_SOURCE_TYPE_DATA_ADD, 3, 4, queue), 7);
  check_equal(merge(DISPATCH_SOURCE_TYPE_DATA_OR, 5, 6, queue), 7);
  check_equal(merge(DISPATCH_SOURCE_TYPE_DATA_REPLACE, 5, 6, queue), 6);
}

static void zero(dispatch_queue_t queue) {
  watch *w = make(DISPATCH_SOURCE_TYPE_DATA_ADD, queue);
  dispatch_source_merge_data(w->source, 2);
  dispatch_source_merge_data(w->source, 9);
  check_equal(w->calls, 0);
  dispatch_resume(w->source);
  event_wait(&w->handled);
  check_equal(w->data, 11);
  dispatch_source_merge_data(w->source, 0);
  dispatch_suspend(w->source);
  dispatch_source_merge_data(w->source, 1);
  dispatch_source_merge_data(w->source, UINTPTR_MAX);
  dispatch_resume(w->source);
  // Only this one reports.
  dispatch_source_merge_data(w->source, 5);
  event_wait(&w->handled);
  check_equal(w->data, 5);
  check_equal(w->calls, 2);
  check_equal(w->registrations, 1);
  check_equal(dispatch_source_testcancel(w->source), 0);
  check_equal(dispatch_source_get_handle(w->source), 0);
  check_equal(dispatch_source_get_mask(w->source), 0);
  end(w);
}

static int second_calls;
static void handle_second(void *context) {
  second_calls++;
  event_happens(&((watch *)context)->handled);
}

static void replacing_handlers(dispatch_queue_t queue) {
  watch *w = make(DISPATCH_SOURCE_TYPE_DATA_ADD, queue);
  dispatch_activate(w->source);
  is_registered(w, queue);
  dispatch_suspend(w->source);
  drain(queue);
  dispatch_source_set_event_handler_f(w->source, handle_second);
  dispatch_source_merge_data(w->source, 1);
  dispatch_resume(w->source);
  event_wait(&w->handled);
  check_equal(w->calls, 0);
  check_equal(second_calls, 1);
  end(w);
}

static void cancelling(dispatch_queue_t queue) {
  // Before activation: only the cancel handler, once it is activated.
  watch *w = make(DISPATCH_SOURCE_TYPE_DATA_ADD, queue);
  dispatch_source_merge_data(w->source, 1);
  dispatch_source_cancel(w->source);
  drain(queue);
  check_equal(w->cancels, 0);
  dispatch_activate(w->source);
  event_wait(&w->cancelled);
  drain(queue);
  check_equal(w->calls, 0);
  check_equal(w->registrations, 0);
  check_equal(w->cancels, 1);
  dispatch_release(w->source);
  free(w);
  // While suspended: after the resumption.
  w = make(DISPATCH_SOURCE_TYPE_DATA_ADD, queue);
  dispatch_activate(w->source);
  is_registered(w, queue);
  dispatch_suspend(w->source);
  dispatch_source_merge_data(w->source, 1);
  dispatch_source_cancel(w->source);
  drain(queue);
  check_equal(w->cancels, 0);
  dispatch_resume(w->source);
  event_wait(&w->cancelled);
  check_equal(w->calls, 0);
  // Later events are not reported.
  dispatch_source_merge_data(w->source, 1);
  drain(queue);
  check_equal(w->calls, 0);
  dispatch_release(w->source);
  free(w);
}

static void refusals(void) {
  check(dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_ADD, 1, 0, NULL) == NULL);
  check(dispatch_source_create(DISPATCH_SOURCE_TYPE_DATA_OR, 0, 1, NULL) == NULL);
  check(dispatch_source_create(DISPATCH_SOURCE_TYPE_READ, (uintptr_t)-1, 0, NULL) == NULL);
  check(dispatch_source_create(DISPATCH_SOURCE_TYPE_SIGNAL, 0, 0, NULL) == NULL);
  check(dispatch_source_create(DISPATCH_SOURCE_TYPE_SIGNAL, 100000, 0, NULL) == NULL);
  check(dispatch_source_create(DISPATCH_SOURCE_TYPE_TIMER, 0, 0x1000, NULL) == NULL);
  check(dispatch_source_create(DISPATCH_SOURCE_TYPE_TIMER, 5, 0, NULL) == NULL);
}

static void default_queue(void) {
  watch *w = make(DISPATCH_SOURCE_TYPE_DATA_OR, NULL);
  dispatch_activate(w->source);
  dispatch_source_merge_data(w->source, 4);
  event_wait(&w->handled);
  check_equal(w->data, 4);
  check(!w->on_queue);
  end(w);
}

int main(void) {
  dispatch_queue_t queue = dispatch_queue_create("handlers", NULL);
  dispatch_queue_set_specific(queue, &key, &key, NULL);
  merging(queue);
  zero(queue);
  replacing_handlers(queue);
  cancelling(queue);
  refusals();
  default_queue();
  dispatch_release(queue);
  return finish();
}
