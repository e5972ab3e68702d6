// Sources of signals.
// Statements: S102, S112, S113.

#include "check.h"

static dispatch_source_t sources[2];
static event handled[2], cancelled;
static int calls[2];
static uintptr_t total[2];

static void handle(void *context) {
  int i = (int)(intptr_t)context;
  calls[i]++;
  total[i] += dispatch_source_get_data(sources[i]);
  event_happens(&handled[i]);
}

int main(void) {
  signal(SIGUSR1, SIG_IGN);
  event_init(&cancelled);
  dispatch_queue_t queue = dispatch_queue_create("signals", NULL);
  for (intptr_t i = 0; i < 2; i++) {
    event_init(&handled[i]);
    sources[i] = dispatch_source_create(DISPATCH_SOURCE_TYPE_SIGNAL, SIGUSR1, 0, queue);
    check(sources[i] != NULL);
    check_equal(dispatch_source_get_handle(sources[i]), SIGUSR1);
    dispatch_set_context(sources[i], (void *)i);
    dispatch_source_set_event_handler_f(sources[i], handle);
    event registered;
    event_init(&registered);
    dispatch_activate(sources[i]);
  }
  drain(queue);
  // Registration is asynchronous, and an earlier signal is ignored and lost. So signals are sent until one is reported.
  event pause_over;
  event_init(&pause_over);
  for (;;) {
    kill(getpid(), SIGUSR1);
    dispatch_after_f(dispatch_time(DISPATCH_TIME_NOW, 1000000), queue, &pause_over, event_happens);
    event_wait(&pause_over);
    if (count_of(&calls[0]) > 0 && count_of(&calls[1]) > 0) break;
  }
  for (int i = 0; i < 2; i++) {
    event_wait(&handled[i]);
    check(calls[i] >= 1);
    check(total[i] >= 1);
    while (event_has_happened(&handled[i])) {
    }
  }
  for (int round = 0; round < 5; round++) {
    kill(getpid(), SIGUSR1);
    event_wait(&handled[0]);
    event_wait(&handled[1]);
  }
  check(total[0] >= 6);
  check(total[1] >= 6);
  for (int i = 0; i < 2; i++) {
    dispatch_set_context(sources[i], &cancelled);
    dispatch_source_set_cancel_handler_f(sources[i], event_happens);
    dispatch_source_cancel(sources[i]);
    event_wait(&cancelled);
    dispatch_release(sources[i]);
  }
  // A late signal does not end the process: the disposition stays.
  kill(getpid(), SIGUSR1);
  check(true);
  dispatch_release(queue);
  return finish();
}
