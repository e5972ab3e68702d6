// Arithmetic of times, on both clocks.
// Statements: S149, S150.

#include "check.h"

#include <time.h>

static uint64_t uptime(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static void constants(void) {
  check_equal(NSEC_PER_SEC, 1000000000);
  check_equal(NSEC_PER_MSEC, 1000000);
  check_equal(NSEC_PER_USEC, 1000);
  check_equal(USEC_PER_SEC, 1000000);
  check(DISPATCH_TIME_NOW == 0);
  check(DISPATCH_TIME_FOREVER == UINT64_MAX);
  check((dispatch_time_t)DISPATCH_WALLTIME_NOW == UINT64_MAX - 1);
  check(sizeof(dispatch_time_t) == 8);
  check(sizeof(NSEC_PER_SEC) == 8);
}

static void relative(void) {
  uint64_t before = uptime();
  dispatch_time_t now = dispatch_time(DISPATCH_TIME_NOW, 0);
  uint64_t after = uptime();
  check(before <= now && now <= after);
  check(dispatch_time(now, 5) == now + 5);
  check(dispatch_time(now, -5) == now - 5);
  check(dispatch_time(1000, 24) == 1024);
  check(dispatch_time(DISPATCH_TIME_NOW, (int64_t)NSEC_PER_SEC) >= now + NSEC_PER_SEC);
  check(dispatch_time(dispatch_time(now, 1234567), -1234567) == now);
}

static void saturation(void) {
  check(dispatch_time(DISPATCH_TIME_FOREVER, 0) == DISPATCH_TIME_FOREVER);
  check(dispatch_time(DISPATCH_TIME_FOREVER, -1) == DISPATCH_TIME_FOREVER);
  check(dispatch_time(DISPATCH_TIME_FOREVER, INT64_MIN) == DISPATCH_TIME_FOREVER);
  check(dispatch_time(DISPATCH_TIME_NOW, INT64_MAX) == DISPATCH_TIME_FOREVER);
  check(dispatch_time(10, INT64_MAX) == DISPATCH_TIME_FOREVER);
  check(dispatch_time(10, -10) == 1);
  check(dispatch_time(10, -1000) == 1);
  check(dispatch_time(10, INT64_MIN) == 1);
  check(dispatch_time(DISPATCH_WALLTIME_NOW, INT64_MAX) == DISPATCH_TIME_FOREVER);
  check(dispatch_walltime(NULL, INT64_MIN) == (dispatch_time_t)DISPATCH_WALLTIME_NOW);
}

static void wall(void) {
  struct timespec five = {5, 0}, five_and_a_bit = {5, 7}, epoch = {0, 0};
  check((int64_t)dispatch_walltime(&five, 0) == -5000000000ll);
  check((int64_t)dispatch_walltime(&five, 3) == -5000000003ll);
  check((int64_t)dispatch_walltime(&five, -3) == -4999999997ll);
  check((int64_t)dispatch_walltime(&five_and_a_bit, 0) == -5000000007ll);
  // Adding keeps the clock.
  check((int64_t)dispatch_time(dispatch_walltime(&five, 0), 10) == -5000000010ll);
  check((int64_t)dispatch_time(dispatch_walltime(&five, 0), -10) == -4999999990ll);
  // The epoch and earlier times have no wall time value: ours uses the earliest one, the
  // toolchain's waits for ever.
  check(dispatch_walltime(&epoch, 0) == (on_concourse() ? (dispatch_time_t)DISPATCH_WALLTIME_NOW : DISPATCH_TIME_FOREVER));
  check(dispatch_walltime(&five, -6000000000ll) == (dispatch_time_t)DISPATCH_WALLTIME_NOW);

  struct timespec before, after;
  clock_gettime(CLOCK_REALTIME, &before);
  int64_t now = -(int64_t)dispatch_walltime(NULL, 0);
  int64_t same = -(int64_t)dispatch_time(DISPATCH_WALLTIME_NOW, 0);
  clock_gettime(CLOCK_REALTIME, &after);
  int64_t low = before.tv_sec * 1000000000ll + before.tv_nsec;
  int64_t high = after.tv_sec * 1000000000ll + after.tv_nsec;
  check(low <= now && now <= high);
  check(now <= same && same <= high);
}

int main(void) {
  constants();
  relative();
  saturation();
  wall();
  return finish();
}
