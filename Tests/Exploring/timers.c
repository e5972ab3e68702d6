// A day of a timer that fires each minute, hours of sleep and of time limits, and a pipe in between.
#include <dispatch/dispatch.h>
#include <time.h>
#include <unistd.h>

static dispatch_semaphore_t event;
static int fires, ends[2];

static int wait_for(int64_t seconds) {
  return dispatch_semaphore_wait(event, dispatch_time(DISPATCH_TIME_NOW, seconds * (int64_t)NSEC_PER_SEC)) == 0;
}

int main(void) {
  const time_t begin = time(NULL);
  dispatch_queue_t queue = dispatch_queue_create("queue", NULL);
  event = dispatch_semaphore_create(0);
  dispatch_source_t timer = dispatch_source_create(DISPATCH_SOURCE_TYPE_TIMER, 0, 0, queue);
  dispatch_source_set_timer(timer, dispatch_time(DISPATCH_TIME_NOW, 0), 60 * NSEC_PER_SEC, 0);
  dispatch_source_set_event_handler(timer, ^{
    if (++fires < 1440) return;
    dispatch_source_cancel(timer);
    dispatch_semaphore_signal(event);
  });
  dispatch_resume(timer);
  if (!wait_for(86400) || time(NULL) - begin != 1439 * 60) return 1;

  dispatch_after(dispatch_time(DISPATCH_TIME_NOW, 3600 * (int64_t)NSEC_PER_SEC), queue, ^{ dispatch_semaphore_signal(event); });
  sleep(1800);
  if (wait_for(1700) || !wait_for(200) || time(NULL) - begin != 1439 * 60 + 3600) return 2;

  if (pipe(ends) != 0) return 3;
  dispatch_source_t reader = dispatch_source_create(DISPATCH_SOURCE_TYPE_READ, (uintptr_t)ends[0], 0, queue);
  dispatch_source_set_event_handler(reader, ^{
    char byte;
    if (read(ends[0], &byte, 1) == 1) dispatch_semaphore_signal(event);
  });
  dispatch_resume(reader);
  usleep(100);
  if (write(ends[1], "x", 1) != 1 || !wait_for(1)) return 4;

  // The queue is blocked for an hour, which looks like a deadlock for as long.
  dispatch_async(queue, ^{ sleep(3600); });
  dispatch_sync(queue, ^{});
  return time(NULL) - begin == 1439 * 60 + 7200 ? 0 : 5;
}
