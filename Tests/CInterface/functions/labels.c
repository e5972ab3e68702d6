// Labels, and which queue is the current one.
// Statements: S13.

#include "check.h"

static char seen[200];
static dispatch_queue_t seen_queue;

static void look(void *context) {
  (void)context;
  snprintf(seen, sizeof seen, "%s", dispatch_queue_get_label(DISPATCH_CURRENT_QUEUE_LABEL));
  seen_queue = dispatch_get_current_queue();
}

static void look_and_tell(void *context) {
  look(NULL);
  event_happens(context);
}

static void look_deeper(void *queue) {
  dispatch_sync_f((dispatch_queue_t)queue, NULL, look);
}

static void *look_on_thread(void *context) {
  look(context);
  return NULL;
}

static void labels(void) {
  char text[] = "org.example.label";
  dispatch_queue_t queue = dispatch_queue_create(text, NULL);
  check(dispatch_queue_get_label(queue) != text);
  text[0] = 'x';
  check_text(dispatch_queue_get_label(queue), "org.example.label");
  dispatch_release(queue);
  dispatch_queue_t nameless = dispatch_queue_create(NULL, NULL);
  check_text(dispatch_queue_get_label(nameless), "");
  dispatch_release(nameless);
  dispatch_queue_t empty = dispatch_queue_create("", NULL);
  check_text(dispatch_queue_get_label(empty), "");
  dispatch_release(empty);
  check_text(dispatch_queue_get_label(dispatch_get_main_queue()), "com.apple.main-thread");
  check_text(dispatch_queue_get_label(dispatch_get_global_queue(0, 0)), "com.apple.root.default-qos");
  check_text(dispatch_queue_get_label(dispatch_get_global_queue(UTILITY, 0)), "com.apple.root.utility-qos");
  check_text(dispatch_queue_get_label(dispatch_get_global_queue(BACKGROUND, 0)), "com.apple.root.background-qos");
  check_text(dispatch_queue_get_label(dispatch_get_global_queue(USER_INITIATED, 0)),
             "com.apple.root.user-initiated-qos");
  check_text(dispatch_queue_get_label(dispatch_get_global_queue(NORMAL, 2)),
             "com.apple.root.default-qos.overcommit");
  char *lengthy = malloc(100001);
  memset(lengthy, 'l', 100000);
  lengthy[100000] = 0;
  dispatch_queue_t wordy = dispatch_queue_create(lengthy, NULL);
  check_text(dispatch_queue_get_label(wordy), lengthy);
  free(lengthy);
  dispatch_release(wordy);
}

static void current(void) {
  event done;
  event_init(&done);
  look(NULL);
  check_text(seen, "com.apple.main-thread");
  check(seen_queue == dispatch_get_main_queue());

  dispatch_queue_t outer = dispatch_queue_create("outer", NULL);
  dispatch_queue_t inner = dispatch_queue_create_with_target("inner", DISPATCH_QUEUE_CONCURRENT, outer);
  dispatch_queue_t other = dispatch_queue_create("other", NULL);
  dispatch_sync_f(outer, NULL, look);
  check_text(seen, "outer");
  check(seen_queue == outer);
  dispatch_async_f(inner, &done, look_and_tell);
  event_wait(&done);
  check_text(seen, "inner");
  check(seen_queue == inner);
  dispatch_sync_f(inner, other, look_deeper);
  check_text(seen, "other");
  check(seen_queue == other);
  look(NULL);
  check_text(seen, "com.apple.main-thread");

  dispatch_async_f(dispatch_get_global_queue(UTILITY, 0), &done, look_and_tell);
  event_wait(&done);
  check_text(seen, "com.apple.root.utility-qos");
  check(seen_queue == dispatch_get_global_queue(UTILITY, 0));

  // A thread of the program is on no queue.
  pthread_t thread;
  pthread_create(&thread, NULL, look_on_thread, NULL);
  pthread_join(thread, NULL);
  check(strncmp(seen, "com.apple.root.default-qos", 26) == 0);
  check(seen_queue != NULL && seen_queue != dispatch_get_main_queue());
  dispatch_release(inner);
  dispatch_release(other);
  dispatch_release(outer);
}

int main(void) {
  labels();
  current();
  return finish();
}
