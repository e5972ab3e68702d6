// Descriptors: eventfd, epoll, timerfd.

#define _GNU_SOURCE
#include "include/CConcourse.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

// Descriptors 0 to 2 belong to the program. A program that was started without them, or that closed them, may later
// open its own files there.
int concourse_above_standard(int descriptor) {
  if (descriptor < 0 || descriptor > 2) return descriptor;
  int higher = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
  int failure = errno;
  close(descriptor);
  errno = failure;
  return higher;
}

bool concourse_is_anonymous(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && (status.st_mode & S_IFMT) == 0;
}

int concourse_eventfd(void) { return concourse_above_standard(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }

void concourse_eventfd_signal(int descriptor) {
  // Fails only when the counter is full; the descriptor is readable then.
  while (eventfd_write(descriptor, 1) != 0 && errno == EINTR) {
  }
}

void concourse_eventfd_clear(int descriptor) {
  eventfd_t count;
  // Fails with EAGAIN when the descriptor is not readable.
  while (eventfd_read(descriptor, &count) != 0 && errno == EINTR) {
  }
}

void concourse_eventfd_replace(int descriptor) {
  int fresh = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fresh < 0) return;
  (void)dup3(fresh, descriptor, O_CLOEXEC);
  close(fresh);
}

int concourse_epoll_create(void) {
  int descriptor = concourse_above_standard(epoll_create1(EPOLL_CLOEXEC));
  return descriptor >= 0 ? descriptor : -errno;
}

_Static_assert(CONCOURSE_READABLE == EPOLLIN && CONCOURSE_PRIORITY == EPOLLPRI && CONCOURSE_WRITABLE == EPOLLOUT &&
                   CONCOURSE_ERROR == EPOLLERR && CONCOURSE_HANG_UP == EPOLLHUP &&
                   (uint32_t)CONCOURSE_ONE_SHOT == (uint32_t)EPOLLONESHOT &&
                   (uint32_t)CONCOURSE_EDGE == (uint32_t)EPOLLET,
               "the header's constants are the kernel's");

int concourse_epoll_control(int epoll, int operation, int descriptor, uint32_t interest, uint64_t token) {
  struct epoll_event event = {.events = interest, .data.u64 = token};
  return epoll_ctl(epoll, operation, descriptor, &event) == 0 ? 0 : -errno;
}

int concourse_epoll_wait(int epoll, struct concourse_event *events, int capacity, int timeout) {
  struct epoll_event found[64];
  int count = epoll_wait(epoll, found, capacity < 64 ? capacity : 64, timeout);
  if (count < 0) return -errno;
  for (int i = 0; i < count; i++)
    events[i] = (struct concourse_event){.ready = found[i].events, .token = found[i].data.u64};
  return count;
}

int concourse_timerfd_create(bool wall) {
  int descriptor =
      concourse_above_standard(timerfd_create(wall ? CLOCK_REALTIME : CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  return descriptor >= 0 ? descriptor : -errno;
}

int concourse_timerfd_arm(int descriptor, bool wall, uint64_t nanoseconds) {
  struct itimerspec time = {
      .it_value = {.tv_sec = (time_t)(nanoseconds / 1000000000), .tv_nsec = (long)(nanoseconds % 1000000000)}};
  int flags = TFD_TIMER_ABSTIME | (wall ? TFD_TIMER_CANCEL_ON_SET : 0);
  return timerfd_settime(descriptor, flags, &time, NULL) == 0 ? 0 : errno;
}

long concourse_readable_bytes(int descriptor) {
  int count = 0;
  if (ioctl(descriptor, FIONREAD, &count) != 0) return -errno;
  // The kernel's count may not fit an int.
  return count < 0 ? INT_MAX : count;
}

bool concourse_is_at_mark(int socket) {
  int answer = 0;
  return ioctl(socket, SIOCATMARK, &answer) == 0 && answer != 0;
}

bool concourse_is_same_file(int descriptor, int other) {
  enum { duplicate_query = 1027 };  // F_DUPFD_QUERY, Linux 6.10
  int answer = fcntl(descriptor, duplicate_query, other);
  if (answer >= 0) return answer;
  // Before, kcmp answers, unless a sandbox refuses it. Not by the process's id: its main thread may have exited.
  pid_t self = (pid_t)concourse_gettid();
  return syscall(SYS_kcmp, self, self, KCMP_FILE, descriptor, other) == 0;
}

bool concourse_has_seals(int descriptor) { return fcntl(descriptor, F_GET_SEALS) >= 0; }

enum concourse_generated concourse_generated(int descriptor) {
  struct statfs system;
  if (fstatfs(descriptor, &system) != 0) return CONCOURSE_GENERATED_NOT;
  switch ((unsigned long)system.f_type) {
  case PROC_SUPER_MAGIC: return CONCOURSE_GENERATED_IN_PROC;
  case SYSFS_MAGIC:
  case CGROUP_SUPER_MAGIC:
  case CGROUP2_SUPER_MAGIC: return CONCOURSE_GENERATED_ELSEWHERE;
  default: return CONCOURSE_GENERATED_NOT;
  }
}

int concourse_poll_now(int descriptor, uint32_t interest) {
  struct pollfd question = {.fd = descriptor, .events = (short)interest};
  int count = poll(&question, 1, 0);
  return count < 0 ? -errno : question.revents;
}
