// Clocks, sleeps, and timer descriptors. Virtual time stands: each reading of a clock advances it by a microsecond, so
// that a loop that waits for a time ends, and it jumps when no thread can go on (runnable.c).

#include "exploring.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>

// What the clocks say when the program begins: the same in each run. Realtime: 2026-01-01.
static uint64_t monotonic_start = 1000ull * NANOSECONDS, realtime_start = 1767225600ull * NANOSECONDS;
static uint64_t now;

static uint64_t nanoseconds(const struct timespec *time) {
  return (uint64_t)time->tv_sec * NANOSECONDS + (uint64_t)time->tv_nsec;
}

static struct timespec timespec_of(uint64_t time) {
  return (struct timespec){.tv_sec = (time_t)(time / NANOSECONDS), .tv_nsec = (long)(time % NANOSECONDS)};
}

static uint64_t kernel_clock(clockid_t clock) {
  struct timespec time;
  SYSTEM3(SYS_clock_gettime, clock, &time, 0);
  return nanoseconds(&time);
}

void explore_begin_time(void) {
  if (!explored_file->real_time) return;
  monotonic_start = kernel_clock(CLOCK_MONOTONIC);
  realtime_start = kernel_clock(CLOCK_REALTIME);
}

uint64_t explore_now(void) { return explored_file->real_time ? kernel_clock(CLOCK_MONOTONIC) - monotonic_start : now; }

static bool is_realtime(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI || clock == CLOCK_REALTIME_ALARM;
}

uint64_t explore_deadline(clockid_t clock, const struct timespec *time, bool is_absolute) {
  if (!time) return NEVER;
  // It has passed. Calls that refuse it do not come here.
  if (time->tv_sec < 0) return is_absolute ? 0 : explore_now();
  uint64_t wanted = nanoseconds(time);
  if ((uint64_t)time->tv_sec > UINT64_MAX / NANOSECONDS / 2) return NEVER - 1;
  if (!is_absolute) return explore_now() + wanted;
  uint64_t start = is_realtime(clock) ? realtime_start : monotonic_start;
  return wanted > start ? wanted - start : 0;
}

void explore_advance(uint64_t time) {
  if (!explored_file->real_time) {
    if (time > now) now = time;
    return;
  }
  explored_file->leaks |= CONCOURSE_EXPLORING_LEAK_REAL_WAIT;
  uint64_t current = explore_now();
  if (time <= current) return;
  // ORDERING: relaxed, both; the watchdog looks again and again.
  __atomic_store_n(&explored_waits, true, __ATOMIC_RELAXED);
  uint64_t milliseconds = (time - current) / 1000000 + 1;
  explore_poll(milliseconds < 1000000 ? (int)milliseconds : 1000000);
  __atomic_store_n(&explored_waits, false, __ATOMIC_RELAXED);
}

// MARK: Clocks

static bool is_virtual(clockid_t clock) { return clock >= 0 && !explored_file->real_time; }

/// A thread that only reads clocks, or reads clocks and takes locks as an empty run loop does, may wait for another one.
static void read_clock(struct explored *self, const void *place) {
  enum { READINGS = 200 };
  static uint32_t readings, points, phase;
  /// Readings while the program has only polled.
  static uint32_t idle_readings;
  now += 1000;
  if (self->points != points) readings = 0;
  points = self->points;
  if (explore_polling_phase() != phase) idle_readings = 0;
  phase = explore_polling_phase();
  if (++readings < READINGS && ++idle_readings < 10 * READINGS) return;
  readings = 0;
  explore_yield(self, OP_CLOCK, NULL, place);
}

INTERPOSED(int, clock_gettime, clockid_t clock, struct timespec *time) {
  struct explored *self = explore_current();
  if (!self || !is_virtual(clock)) return REAL(clock_gettime)(clock, time);
  read_clock(self, HERE);
  bool counts_use = clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
  *time = timespec_of(now + (is_realtime(clock) ? realtime_start : counts_use ? 0 : monotonic_start));
  return 0;
}

INTERPOSED(int, gettimeofday, struct timeval *time, void *zone) {
  struct explored *self = explore_current();
  if (!self || !is_virtual(CLOCK_REALTIME)) return REAL(gettimeofday)(time, zone);
  read_clock(self, HERE);
  time->tv_sec = (time_t)((now + realtime_start) / NANOSECONDS);
  time->tv_usec = (suseconds_t)((now + realtime_start) % NANOSECONDS / 1000);
  return 0;
}

INTERPOSED(time_t, time, time_t *seconds) {
  struct explored *self = explore_current();
  if (!self || !is_virtual(CLOCK_REALTIME)) return REAL(time)(seconds);
  read_clock(self, HERE);
  time_t result = (time_t)((now + realtime_start) / NANOSECONDS);
  if (seconds) *seconds = result;
  return result;
}

INTERPOSED(clock_t, clock, void) {
  struct explored *self = explore_current();
  if (!self || !is_virtual(CLOCK_PROCESS_CPUTIME_ID)) return REAL(clock)();
  read_clock(self, HERE);
  return (clock_t)(now / 1000);
}

INTERPOSED(int, timespec_get, struct timespec *time, int base) {
  if (!explore_current() || base != TIME_UTC) return REAL(timespec_get)(time, base);
  return clock_gettime(CLOCK_REALTIME, time) == 0 ? base : 0;
}

// MARK: Sleeps

static int sleep_until(struct explored *self, uint64_t deadline, const void *place) {
  if (deadline <= explore_now()) {
    explore_yield(self, OP_SLEEP, NULL, place);
    return 0;
  }
  explore_point(self, OP_SLEEP, NULL, place);
  int result = explore_wait(self, OP_SLEEP, NULL, deadline, place);
  explore_test_cancel(self);
  return result == EINTR ? EINTR : 0;
}

static void leave_rest(uint64_t deadline, struct timespec *rest) {
  uint64_t current = explore_now();
  if (rest) *rest = timespec_of(deadline > current ? deadline - current : 0);
}

int explore_nanosleep(struct explored *self, const struct timespec *time, struct timespec *rest, const void *place) {
  if (!explore_is_duration(time)) return (int)explore_result(-EINVAL);
  uint64_t deadline = explore_deadline(CLOCK_MONOTONIC, time, false);
  if (sleep_until(self, deadline, place) == 0) return 0;
  leave_rest(deadline, rest);
  errno = EINTR;
  return -1;
}

INTERPOSED(int, nanosleep, const struct timespec *time, struct timespec *rest) {
  struct explored *self = explore_current();
  return self ? explore_nanosleep(self, time, rest, HERE) : REAL(nanosleep)(time, rest);
}

INTERPOSED(int, clock_nanosleep, clockid_t clock, int flags, const struct timespec *time, struct timespec *rest) {
  struct explored *self = explore_current();
  if (!self) return REAL(clock_nanosleep)(clock, flags, time, rest);
  // The kernel refuses such moments, too.
  if (!explore_is_duration(time)) return EINVAL;
  uint64_t deadline = explore_deadline(clock, time, flags & TIMER_ABSTIME);
  if (sleep_until(self, deadline, HERE) == 0) return 0;
  if (!(flags & TIMER_ABSTIME)) leave_rest(deadline, rest);
  return EINTR;
}

INTERPOSED(int, usleep, useconds_t microseconds) {
  struct explored *self = explore_current();
  if (!self) return REAL(usleep)(microseconds);
  if (sleep_until(self, explore_now() + microseconds * 1000ull, HERE) == 0) return 0;
  errno = EINTR;
  return -1;
}

INTERPOSED(unsigned, sleep, unsigned seconds) {
  struct explored *self = explore_current();
  if (!self) return REAL(sleep)(seconds);
  uint64_t deadline = explore_now() + (uint64_t)seconds * NANOSECONDS;
  if (sleep_until(self, deadline, HERE) == 0) return 0;
  uint64_t current = explore_now();
  return deadline > current ? (unsigned)((deadline - current + NANOSECONDS - 1) / NANOSECONDS) : 0;
}

// MARK: Timer descriptors

// The real one is disarmed. When its time comes it is set to fire at once, so that it is readable, also for epoll; the
// count that the program reads is ours.
enum { MOST_DESCRIPTORS = 1024 };
static struct timer {
  bool is_known;
  clockid_t clock;
  uint64_t deadline, interval, expirations;
} timers[MOST_DESCRIPTORS];
static int timer_limit;

/// Whether the descriptor is still one of a timer: `dup2`, `fclose` and others may have given its number to another file.
static bool is_timer(int descriptor) {
  static const char name[] = "anon_inode:[timerfd]";
  char path[32], text[sizeof name];
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  long length = SYSTEM4(SYS_readlinkat, AT_FDCWD, path, text, sizeof text);
  return length == sizeof name - 1 && memcmp(text, name, sizeof name - 1) == 0;
}

static struct timer *timer(int descriptor) {
  bool is_known = descriptor >= 0 && descriptor < MOST_DESCRIPTORS && timers[descriptor].is_known;
  if (!is_known || !explored_self || explored_file->real_time) return NULL;
  timers[descriptor].is_known = is_timer(descriptor);
  return timers[descriptor].is_known ? &timers[descriptor] : NULL;
}

uint64_t explore_timer_deadline(void) {
  uint64_t earliest = NEVER;
  for (int i = 0; i < timer_limit; i++)
    if (timers[i].is_known && timers[i].deadline < earliest) earliest = timers[i].deadline;
  return earliest;
}

/// Returns false if the descriptor is no longer one of a timer.
static bool make_readable(int descriptor) {
  struct itimerspec at_once = {.it_value.tv_nsec = 1};
  if (SYSTEM4(SYS_timerfd_settime, descriptor, 0, &at_once, NULL) != 0) return false;
  struct pollfd question = {.fd = descriptor, .events = POLLIN};
  struct timespec limit = {.tv_sec = 1};
  explore_system(SYS_ppoll, (long)&question, 1, (long)&limit, 0, 0, 0);
  return true;
}

void explore_fire_timers(void) {
  for (int i = 0; i < timer_limit; i++) {
    struct timer *timer = &timers[i];
    if (!timer->is_known || timer->deadline > now) continue;
    timer->expirations++;
    if (timer->interval) {
      uint64_t missed = (now - timer->deadline) / timer->interval;
      timer->expirations += missed;
      timer->deadline += (missed + 1) * timer->interval;
    } else {
      timer->deadline = NEVER;
    }
    timer->is_known = make_readable(i);
  }
}

INTERPOSED(int, timerfd_create, int clock, int flags) {
  int descriptor = REAL(timerfd_create)(clock, flags);
  if (!explore_current() || descriptor < 0 || descriptor >= MOST_DESCRIPTORS) return descriptor;
  timers[descriptor] = (struct timer){.is_known = true, .clock = clock, .deadline = NEVER};
  if (descriptor >= timer_limit) timer_limit = descriptor + 1;
  return descriptor;
}

static void describe(const struct timer *timer, struct itimerspec *time) {
  uint64_t rest = timer->deadline == NEVER ? 0 : timer->deadline > now ? timer->deadline - now : 1;
  time->it_value = timespec_of(rest);
  time->it_interval = timespec_of(timer->interval);
}

INTERPOSED(int, timerfd_settime, int descriptor, int flags, const struct itimerspec *time, struct itimerspec *old) {
  struct timer *timer_ = timer(descriptor);
  if (!timer_ || !time) return REAL(timerfd_settime)(descriptor, flags, time, old);
  if (!explore_is_duration(&time->it_value) || !explore_is_duration(&time->it_interval))
    return (int)explore_result(-EINVAL);
  if (old) describe(timer_, old);
  // The real one becomes unreadable.
  struct itimerspec none = {.it_value = {0}};
  if (REAL(timerfd_settime)(descriptor, 0, &none, NULL) != 0) return -1;
  bool is_off = time->it_value.tv_sec == 0 && time->it_value.tv_nsec == 0;
  timer_->deadline =
      is_off ? NEVER : explore_deadline(timer_->clock, &time->it_value, (flags & TFD_TIMER_ABSTIME) != 0);
  timer_->interval = nanoseconds(&time->it_interval);
  timer_->expirations = 0;
  return 0;
}

INTERPOSED(int, timerfd_gettime, int descriptor, struct itimerspec *time) {
  struct timer *timer_ = timer(descriptor);
  if (!timer_) return REAL(timerfd_gettime)(descriptor, time);
  describe(timer_, time);
  return 0;
}

void explore_forget_timer(int descriptor) {
  if (descriptor >= 0 && descriptor < MOST_DESCRIPTORS) timers[descriptor].is_known = false;
}

/// After the program has read 8 bytes from a descriptor: the count of a timer.
void explore_count_expirations(int descriptor, uint64_t *count) {
  struct timer *timer_ = timer(descriptor);
  if (!timer_) return;
  *count = timer_->expirations;
  timer_->expirations = 0;
}
