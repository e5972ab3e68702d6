// Interval timers, alarms and the timers of POSIX, on the clock of the schedule. When its time has come, a timer sends its
// signal to the process, as the kernel would; the thread that runs next and does not block it takes it.

#include "exploring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { MOST_TIMERS = 64 };
static struct alarm {
  bool is_known;
  /// SIGEV_SIGNAL and so on.
  int kind;
  int signal;
  clockid_t clock;
  pid_t thread;
  union sigval value;
  void (*function)(union sigval);
  uint64_t deadline, interval;
  /// Expirations that the timer's own thread has not seen; 1 to send a signal.
  uint64_t expirations;
  int overruns;
} alarms[MOST_TIMERS];
/// The first one is that of `setitimer` and `alarm`.
static struct alarm *const process_alarm = &alarms[0];

uint64_t explore_alarm_deadline(void) {
  uint64_t earliest = NEVER;
  for (int i = 0; i < MOST_TIMERS; i++)
    if (alarms[i].is_known && alarms[i].deadline < earliest) earliest = alarms[i].deadline;
  return earliest;
}

// MARK: What happens when the time has come

static void send(const struct alarm *alarm) {
  siginfo_t information = {.si_signo = alarm->signal, .si_code = SI_TIMER};
  information.si_value = alarm->value;
  long process = SYSTEM1(SYS_getpid, 0);
  if (alarm->kind == SIGEV_THREAD_ID) {
    SYSTEM4(SYS_rt_tgsigqueueinfo, process, alarm->thread, alarm->signal, &information);
    for (uint32_t i = 0; i < explored_live_count; i++)
      if (explored_live[i]->id == (uint32_t)alarm->thread) explore_interrupt_by(explored_live[i], alarm->signal);
  } else if (explore_discards(alarm->signal)) {
    return;
  } else if (alarm == process_alarm) {
    SYSTEM3(SYS_kill, process, alarm->signal, 0);
  } else {
    SYSTEM3(SYS_rt_sigqueueinfo, process, alarm->signal, &information);
  }
  explored_signals_sent = true;
}

static void expire(struct alarm *alarm) {
  uint64_t now = explore_now(), count = 1;
  if (alarm->interval) count += (now - alarm->deadline) / alarm->interval;
  alarm->deadline = alarm->interval ? alarm->deadline + count * alarm->interval : NEVER;
  alarm->overruns = (int)count - 1;
  if (alarm->kind == SIGEV_THREAD) {
    alarm->expirations++;
    explore_wake(alarm, 1);
  } else if (alarm->kind != SIGEV_NONE) {
    // The handler must not run here, inside the library.
    explore_block_signals(explored_self);
    send(alarm);
  }
}

void explore_fire_alarms(void) {
  for (int i = 0; i < MOST_TIMERS; i++)
    if (alarms[i].is_known && alarms[i].deadline <= explore_now()) expire(&alarms[i]);
}

/// What a timer calls. The timer may be deleted before the call, and its place taken by another one.
struct call {
  void (*function)(union sigval);
  union sigval value;
};

static void *call(void *argument) {
  struct call call = *(struct call *)argument;
  free(argument);
  call.function(call.value);
  return NULL;
}

/// The thread of a timer with SIGEV_THREAD: it makes another one for each expiration.
static void *serve(void *argument) {
  struct alarm *alarm = argument;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  while (alarm->is_known) {
    if (alarm->expirations == 0) {
      explore_wait(explored_self, OP_TIMER, alarm, NEVER, HERE);
      continue;
    }
    alarm->expirations--;
    pthread_t thread;
    struct call *wanted = malloc(sizeof *wanted);
    if (!wanted) continue;
    *wanted = (struct call){alarm->function, alarm->value};
    if (explore_create(explored_self, &thread, &attributes, call, wanted, false, HERE) != 0) free(wanted);
  }
  pthread_attr_destroy(&attributes);
  alarm->kind = SIGEV_SIGNAL;
  return NULL;
}

// MARK: Setting

static uint64_t nanoseconds(const struct timespec *time) {
  return (uint64_t)time->tv_sec * NANOSECONDS + (uint64_t)time->tv_nsec;
}

static uint64_t in_nanoseconds(const struct timeval *time) {
  return (uint64_t)time->tv_sec * NANOSECONDS + (uint64_t)time->tv_usec * 1000;
}

static uint64_t rest_of(const struct alarm *alarm) {
  if (alarm->deadline == NEVER) return 0;
  uint64_t now = explore_now();
  return alarm->deadline > now ? alarm->deadline - now : 1000;
}

static bool is_virtual(void) { return explore_current() && !explored_file->real_time; }

/// Sets the alarm of the process; returns the time that was left.
static uint64_t set_process_alarm(uint64_t time, uint64_t interval) {
  uint64_t rest = process_alarm->is_known ? rest_of(process_alarm) : 0;
  *process_alarm = (struct alarm){.is_known = true, .kind = SIGEV_SIGNAL, .signal = SIGALRM};
  process_alarm->deadline = time ? explore_now() + time : NEVER;
  process_alarm->interval = interval;
  return rest;
}

static struct timeval timeval_of(uint64_t time) {
  return (struct timeval){.tv_sec = (time_t)(time / NANOSECONDS), .tv_usec = (suseconds_t)(time % NANOSECONDS / 1000)};
}

INTERPOSED(int, setitimer, __itimer_which_t which, const struct itimerval *time, struct itimerval *old) {
  if (!is_virtual() || which != ITIMER_REAL || !time) return REAL(setitimer)(which, time, old);
  uint64_t interval = process_alarm->interval;
  uint64_t rest = set_process_alarm(in_nanoseconds(&time->it_value), in_nanoseconds(&time->it_interval));
  if (old) *old = (struct itimerval){.it_value = timeval_of(rest), .it_interval = timeval_of(interval)};
  return 0;
}

INTERPOSED(int, getitimer, __itimer_which_t which, struct itimerval *time) {
  if (!is_virtual() || which != ITIMER_REAL || !time) return REAL(getitimer)(which, time);
  uint64_t rest = process_alarm->is_known ? rest_of(process_alarm) : 0;
  *time = (struct itimerval){.it_value = timeval_of(rest), .it_interval = timeval_of(process_alarm->interval)};
  return 0;
}

INTERPOSED(unsigned, alarm, unsigned seconds) {
  if (!is_virtual()) return REAL(alarm)(seconds);
  uint64_t rest = set_process_alarm((uint64_t)seconds * NANOSECONDS, 0);
  // As the kernel rounds it: never to 0 while there is a rest.
  uint64_t whole = (rest + NANOSECONDS / 2) / NANOSECONDS;
  return rest && !whole ? 1 : (unsigned)whole;
}

INTERPOSED(useconds_t, ualarm, useconds_t time, useconds_t interval) {
  if (!is_virtual()) return REAL(ualarm)(time, interval);
  return (useconds_t)(set_process_alarm(time * 1000ull, interval * 1000ull) / 1000);
}

// MARK: POSIX

/// The virtual timer, if it is one.
static struct alarm *known(timer_t timer) {
  struct alarm *alarm = (struct alarm *)timer;
  bool is_ours = alarm > alarms && alarm < alarms + MOST_TIMERS && alarm->is_known;
  return is_ours ? alarm : NULL;
}

static struct alarm *free_alarm(void) {
  for (int i = 1; i < MOST_TIMERS; i++)
    // The thread of a deleted one may have to end first.
    if (!alarms[i].is_known && alarms[i].kind != SIGEV_THREAD) return &alarms[i];
  return NULL;
}

INTERPOSED(int, timer_create, clockid_t clock, struct sigevent *event, timer_t *timer) {
  struct explored *self = explore_current();
  struct alarm *alarm = is_virtual() && clock >= 0 && clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID
                            ? free_alarm()
                            : NULL;
  if (!alarm) return REAL(timer_create)(clock, event, timer);
  *alarm = (struct alarm){.is_known = true, .kind = SIGEV_SIGNAL, .signal = SIGALRM, .clock = clock, .deadline = NEVER};
  if (event) {
    alarm->kind = event->sigev_notify;
    alarm->signal = event->sigev_signo;
    alarm->value = event->sigev_value;
  } else {
    alarm->value.sival_ptr = alarm;
  }
  if (alarm->kind == SIGEV_THREAD_ID) alarm->thread = event->_sigev_un._tid;
  if (alarm->kind == SIGEV_THREAD) {
    alarm->function = event->sigev_notify_function;
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int failure = explore_create(self, &thread, &attributes, serve, alarm, false, HERE);
    pthread_attr_destroy(&attributes);
    if (failure != 0) {
      *alarm = (struct alarm){.is_known = false};
      errno = failure;
      return -1;
    }
  }
  *timer = (timer_t)alarm;
  return 0;
}

static void describe(const struct alarm *alarm, struct itimerspec *time) {
  uint64_t rest = rest_of(alarm);
  time->it_value = (struct timespec){(time_t)(rest / NANOSECONDS), (long)(rest % NANOSECONDS)};
  time->it_interval =
      (struct timespec){(time_t)(alarm->interval / NANOSECONDS), (long)(alarm->interval % NANOSECONDS)};
}

INTERPOSED(int, timer_settime, timer_t timer, int flags, const struct itimerspec *time, struct itimerspec *old) {
  struct alarm *alarm = known(timer);
  if (!alarm) return REAL(timer_settime)(timer, flags, time, old);
  if (!explore_is_duration(&time->it_value) || !explore_is_duration(&time->it_interval))
    return (int)explore_result(-EINVAL);
  if (old) describe(alarm, old);
  bool is_off = nanoseconds(&time->it_value) == 0;
  alarm->deadline = is_off ? NEVER : explore_deadline(alarm->clock, &time->it_value, (flags & TIMER_ABSTIME) != 0);
  alarm->interval = nanoseconds(&time->it_interval);
  alarm->expirations = 0;
  return 0;
}

INTERPOSED(int, timer_gettime, timer_t timer, struct itimerspec *time) {
  struct alarm *alarm = known(timer);
  if (!alarm) return REAL(timer_gettime)(timer, time);
  describe(alarm, time);
  return 0;
}

INTERPOSED(int, timer_getoverrun, timer_t timer) {
  struct alarm *alarm = known(timer);
  return alarm ? alarm->overruns : REAL(timer_getoverrun)(timer);
}

INTERPOSED(int, timer_delete, timer_t timer) {
  struct alarm *alarm = known(timer);
  if (!alarm) return REAL(timer_delete)(timer);
  alarm->is_known = false;
  if (alarm->kind == SIGEV_THREAD) explore_wake(alarm, 1);
  return 0;
}
