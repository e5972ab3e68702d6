// Timers that send signals or call functions. With the argument `missed` the signal may come between the look and the wait.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t alarms, ticks;
static sem_t called;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int calls;

static void count(int signal) {
  if (signal == SIGALRM) alarms++;
  else ticks++;
}

static void call(union sigval value) {
  pthread_mutex_lock(&mutex);
  calls += value.sival_int;
  pthread_mutex_unlock(&mutex);
  sem_post(&called);
}

static time_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

static void *work(void *unused) {
  for (int i = 0; i < 3; i++) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    usleep(100);
  }
  return unused;
}

static int check(void) {
  // Another thread blocks the signals, so the main thread takes them.
  pthread_t worker;
  sigset_t all, none, former;
  sigfillset(&all);
  sigemptyset(&none);
  sigprocmask(SIG_BLOCK, &all, &former);
  pthread_create(&worker, NULL, work, NULL);
  sigprocmask(SIG_SETMASK, &former, NULL);

  // A day.
  time_t begin = now();
  alarm(86400);
  pause();
  if (alarms != 1 || now() != begin + 86400) return 2;
  alarm(10);
  sleep(4);
  unsigned rest = alarm(0);
  if (rest < 5 || rest > 6 || sleep(100) != 0 || alarms != 1) return 3;

  struct itimerval each = {.it_value.tv_sec = 1, .it_interval.tv_sec = 2}, seen;
  setitimer(ITIMER_REAL, &each, NULL);
  begin = now();
  sigprocmask(SIG_BLOCK, &all, &former);
  while (alarms < 4) sigsuspend(&none);
  sigprocmask(SIG_SETMASK, &former, NULL);
  if (now() != begin + 5) return 4;
  getitimer(ITIMER_REAL, &seen);
  if (seen.it_interval.tv_sec != 2 || seen.it_value.tv_sec > 2) return 5;
  memset(&each, 0, sizeof each);
  setitimer(ITIMER_REAL, &each, NULL);
  sleep(10);
  if (alarms != 4) return 6;

  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  struct itimerspec times = {.it_value.tv_nsec = 1000000, .it_interval.tv_nsec = 1000000};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &times, NULL) != 0) return 7;
  while (ticks < 5) pause();
  timer_delete(timer);
  sig_atomic_t last = ticks;
  sleep(1);
  if (ticks != last) return 8;

  sem_init(&called, 0, 0);
  event = (struct sigevent){.sigev_notify = SIGEV_THREAD, .sigev_notify_function = call, .sigev_value.sival_int = 2};
  if (timer_create(CLOCK_REALTIME, &event, &timer) != 0 || timer_settime(timer, 0, &times, NULL) != 0) return 9;
  for (int i = 0; i < 3; i++)
    while (sem_wait(&called) != 0) continue;
  timer_delete(timer);
  pthread_mutex_lock(&mutex);
  bool is_enough = calls >= 6;
  pthread_mutex_unlock(&mutex);
  pthread_join(worker, NULL);
  return is_enough ? 0 : 10;
}

int main(int arguments, char **names) {
  signal(SIGALRM, count);
  signal(SIGUSR1, count);
  if (arguments == 1) return check();
  if (strcmp(names[1], "missed") != 0) return 1;
  ualarm(1000, 0);
  work(NULL);
  usleep(600);
  if (alarms == 0) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pause();
  }
  return 0;
}
