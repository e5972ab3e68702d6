// Calls that wait for descriptors. Each tries without waiting; what would block waits in the schedule, which polls the
// descriptors of all waiting threads at each decision.

#include "exploring.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

void explore_forget_timer(int descriptor);
void explore_count_expirations(int descriptor, uint64_t *count);

static int poll_now(struct pollfd *descriptors, nfds_t count, int milliseconds) {
  struct timespec limit = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};
  return (int)explore_system(SYS_ppoll, (long)descriptors, (long)count, (long)&limit, 0, 0, 0);
}

/// As the kernel says it once the children rest.
static int look(struct pollfd *descriptors, nfds_t count) {
  explore_settle();
  return poll_now(descriptors, count, 0);
}

bool explore_poll(int milliseconds) {
  enum { MOST = 4096 };
  static struct pollfd all[MOST];
  uint32_t count = 0;
  for (uint32_t i = 0; i < explored_live_count; i++) {
    const struct explored *thread = explored_live[i];
    if (thread->state != CONCOURSE_EXPLORING_WAITING || !(thread->wakes & WAKES_DESCRIPTORS)) continue;
    if (count + thread->descriptor_count > MOST) break;
    memcpy(&all[count], thread->descriptors, thread->descriptor_count * sizeof *all);
    count += thread->descriptor_count;
  }
  // Without descriptors, a sleep.
  if ((count == 0 && milliseconds == 0) || poll_now(all, count, milliseconds) <= 0) return false;
  const struct pollfd *answer = all;
  for (uint32_t i = 0; i < explored_live_count; i++) {
    struct explored *thread = explored_live[i];
    if (thread->state != CONCOURSE_EXPLORING_WAITING || !(thread->wakes & WAKES_DESCRIPTORS)) continue;
    if (answer + thread->descriptor_count > all + count) break;
    bool is_ready = false;
    for (uint32_t k = 0; k < thread->descriptor_count; k++) is_ready |= answer[k].revents != 0;
    answer += thread->descriptor_count;
    if (is_ready) explore_make_runnable(thread);
  }
  return true;
}

static uint64_t in_milliseconds(int timeout) {
  return timeout < 0 ? NEVER : explore_now() + (uint64_t)timeout * 1000000;
}

// MARK: poll, select, epoll

// As in the kernel: the mask is the thread's only while it waits, and a descriptor that is ready comes before a signal.
static int wait_for(struct explored *self, struct pollfd *descriptors, nfds_t count, bool waits, uint64_t deadline,
                    const sigset_t *set, const void *place) {
  uint64_t kept;
  const uint64_t *mask = explore_mask(set, &kept);
  if (waits) explore_point(self, OP_POLL, NULL, place);
  else explore_yield(self, OP_POLL, NULL, place);
  for (;;) {
    int ready = look(descriptors, count);
    if (ready != 0) return (int)explore_result(ready);
    if (explore_take_admitted(mask)) return (int)explore_result(-EINTR);
    if (!waits) return 0;
    self->waiting_mask = mask;
    int result = explore_wait_descriptors(self, OP_POLL, descriptors, (uint32_t)count, deadline, place);
    explore_test_cancel(self);
    if (result == ETIMEDOUT) return 0;
    if (result == EINTR) return (int)explore_result(-EINTR);
  }
}

INTERPOSED(int, poll, struct pollfd *descriptors, nfds_t count, int timeout) {
  struct explored *self = explore_current();
  if (!self) return REAL(poll)(descriptors, count, timeout);
  return wait_for(self, descriptors, count, timeout != 0, in_milliseconds(timeout), NULL, HERE);
}

INTERPOSED(int, ppoll, struct pollfd *descriptors, nfds_t count, const struct timespec *time, const sigset_t *mask) {
  struct explored *self = explore_current();
  if (!self) return REAL(ppoll)(descriptors, count, time, mask);
  if (!explore_is_duration(time)) return (int)explore_result(-EINVAL);
  bool waits = !time || time->tv_sec != 0 || time->tv_nsec != 0;
  return wait_for(self, descriptors, count, waits, explore_deadline(CLOCK_MONOTONIC, time, false), mask, HERE);
}

static int select_in(struct explored *self, int limit, fd_set *sets[3], bool waits, uint64_t deadline,
                     const sigset_t *mask, const void *place) {
  static const short events[3] = {POLLIN, POLLOUT, POLLPRI};
  static const short answers[3] = {POLLIN | POLLHUP | POLLERR, POLLOUT | POLLERR, POLLPRI};
  if (limit > FD_SETSIZE) limit = FD_SETSIZE;
  // Threads may have small stacks.
  struct pollfd descriptors[limit > 0 ? limit : 1];
  nfds_t count = 0;
  for (int i = 0; i < limit; i++) {
    short wanted = 0;
    for (int k = 0; k < 3; k++)
      if (sets[k] && FD_ISSET(i, sets[k])) wanted |= events[k];
    if (wanted) descriptors[count++] = (struct pollfd){.fd = i, .events = wanted};
  }
  int result = wait_for(self, descriptors, count, waits, deadline, mask, place);
  if (result < 0) return result;
  int found = 0;
  for (nfds_t i = 0; i < count; i++) {
    if (descriptors[i].revents & POLLNVAL) return (int)explore_result(-EBADF);
    for (int k = 0; k < 3; k++) {
      if (!(descriptors[i].events & events[k])) continue;
      if (descriptors[i].revents & answers[k]) found++;
      else FD_CLR(descriptors[i].fd, sets[k]);
    }
  }
  return found;
}

INTERPOSED(int, select, int limit, fd_set *reads, fd_set *writes, fd_set *others, struct timeval *timeout) {
  struct explored *self = explore_current();
  if (!self) return REAL(select)(limit, reads, writes, others, timeout);
  fd_set *sets[3] = {reads, writes, others};
  uint64_t deadline = NEVER;
  if (timeout) {
    // Microseconds may be more than a second here.
    struct timespec time = {timeout->tv_sec, timeout->tv_usec % 1000000 * 1000};
    if (timeout->tv_sec < 0 || timeout->tv_usec < 0) return (int)explore_result(-EINVAL);
    if (time.tv_sec < INT32_MAX) time.tv_sec += timeout->tv_usec / 1000000;
    deadline = explore_deadline(CLOCK_MONOTONIC, &time, false);
  }
  int found = select_in(self, limit, sets, !timeout || timeout->tv_sec || timeout->tv_usec, deadline, NULL, HERE);
  if (!timeout) return found;
  // As the kernel does it, the time that is left.
  uint64_t now = explore_now(), rest = deadline > now ? deadline - now : 0;
  *timeout = (struct timeval){(time_t)(rest / NANOSECONDS), (suseconds_t)(rest % NANOSECONDS / 1000)};
  return found;
}

INTERPOSED(int, pselect, int limit, fd_set *reads, fd_set *writes, fd_set *others, const struct timespec *time,
           const sigset_t *mask) {
  struct explored *self = explore_current();
  if (!self) return REAL(pselect)(limit, reads, writes, others, time, mask);
  if (!explore_is_duration(time)) return (int)explore_result(-EINVAL);
  fd_set *sets[3] = {reads, writes, others};
  return select_in(self, limit, sets, !time || time->tv_sec || time->tv_nsec,
                   explore_deadline(CLOCK_MONOTONIC, time, false), mask, HERE);
}

static int wait_events(struct explored *self, int epoll, struct epoll_event *events, int capacity, bool waits,
                       uint64_t deadline, const sigset_t *set, const void *place) {
  uint64_t kept;
  const uint64_t *mask = explore_mask(set, &kept);
  if (!waits) explore_yield(self, OP_EPOLL, (void *)(uintptr_t)epoll, place);
  else explore_point(self, OP_EPOLL, (void *)(uintptr_t)epoll, place);
  struct pollfd descriptor = {.fd = epoll, .events = POLLIN};
  for (;;) {
    explore_settle();
    long found = explore_system(SYS_epoll_pwait, epoll, (long)events, capacity, 0, 0, 0);
    if (found != 0 || !waits) return (int)explore_result(found);
    if (explore_take_admitted(mask)) return (int)explore_result(-EINTR);
    self->waiting_mask = mask;
    int result = explore_wait_descriptors(self, OP_EPOLL, &descriptor, 1, deadline, place);
    explore_test_cancel(self);
    if (result == ETIMEDOUT) return 0;
    if (result == EINTR) return (int)explore_result(-EINTR);
  }
}

INTERPOSED(int, epoll_wait, int epoll, struct epoll_event *events, int capacity, int timeout) {
  struct explored *self = explore_current();
  if (!self) return REAL(epoll_wait)(epoll, events, capacity, timeout);
  return wait_events(self, epoll, events, capacity, timeout != 0, in_milliseconds(timeout), NULL, HERE);
}

INTERPOSED(int, epoll_pwait, int epoll, struct epoll_event *events, int capacity, int timeout, const sigset_t *mask) {
  struct explored *self = explore_current();
  if (!self) return REAL(epoll_pwait)(epoll, events, capacity, timeout, mask);
  return wait_events(self, epoll, events, capacity, timeout != 0, in_milliseconds(timeout), mask, HERE);
}

INTERPOSED(int, epoll_pwait2, int epoll, struct epoll_event *events, int capacity, const struct timespec *time,
           const sigset_t *mask) {
  struct explored *self = explore_current();
  if (!self) return REAL(epoll_pwait2)(epoll, events, capacity, time, mask);
  if (!explore_is_duration(time)) return (int)explore_result(-EINVAL);
  return wait_events(self, epoll, events, capacity, !time || time->tv_sec || time->tv_nsec,
                     explore_deadline(CLOCK_MONOTONIC, time, false), mask, HERE);
}

// MARK: Reading and writing

/// Whether the descriptor may block: not a file or a directory.
static bool may_block(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return false;
  return !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode) && !S_ISBLK(status.st_mode);
}

/// The time limit that the program has set for such calls of a socket.
static uint64_t own_deadline(int descriptor, short events) {
  struct timeval limit;
  socklen_t size = sizeof limit;
  int option = events & POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO;
  if (getsockopt(descriptor, SOL_SOCKET, option, &limit, &size) != 0 || (limit.tv_sec == 0 && limit.tv_usec == 0))
    return NEVER;
  return explore_now() + (uint64_t)limit.tv_sec * NANOSECONDS + (uint64_t)limit.tv_usec * 1000;
}

/// Comes back when the call can be made: it does not block then, or the descriptor never does. Returns 0 or the errno.
/// `begun`: the call has transferred something already, so it ends with the next signal and is not restarted.
static int ready_for(struct explored *self, int descriptor, short events, uint16_t operation, bool blocks, bool begun,
                     const void *place) {
  if (!may_block(descriptor)) return 0;
  explore_point(self, operation, (void *)(uintptr_t)descriptor, place);
  if (!blocks || fcntl(descriptor, F_GETFL) & O_NONBLOCK) return 0;
  struct pollfd question = {.fd = descriptor, .events = events};
  uint64_t deadline = 0;
  while (look(&question, 1) == 0) {
    if (deadline == 0) deadline = own_deadline(descriptor, events);
    int result = explore_wait_descriptors(self, operation, &question, 1, deadline, place);
    explore_test_cancel(self);
    if (result == ETIMEDOUT) return EAGAIN;
    // As in the kernel, a call with a time limit does not go on.
    if (result == EINTR && (begun || deadline != NEVER || !explore_goes_on(self))) return EINTR;
  }
  return 0;
}

static bool blocks_in(int flags) { return !(flags & MSG_DONTWAIT); }

/// A blocking write of more than this may block though the pipe has room for some.
enum { SURE_WRITE = 4096 };

/// Whether the descriptor has no boundaries of messages, so that its bytes can come and go in parts.
static bool is_stream(int descriptor) {
  struct stat status;
  int type;
  socklen_t size = sizeof type;
  if (fstat(descriptor, &status) != 0) return false;
  if (S_ISFIFO(status.st_mode)) return true;
  return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

static size_t sure_part(int descriptor, size_t size) {
  if (size <= SURE_WRITE || !is_stream(descriptor)) return size;
  return fcntl(descriptor, F_GETFL) & O_NONBLOCK ? size : SURE_WRITE;
}

static size_t size_of(const struct iovec *parts, size_t count) {
  size_t size = 0;
  for (size_t i = 0; i < count; i++) size += parts[i].iov_len;
  return size;
}

#define WAITS(type, name, events, operation, blocks, parameters, arguments)                 \
  INTERPOSED(type, name, parameters) {                                                      \
    struct explored *self = explore_current();                                              \
    if (!self) return REAL(name)(arguments);                                                \
    int failure = ready_for(self, descriptor, events, operation, blocks, false, HERE);      \
    if (failure == 0) return REAL(name)(arguments);                                         \
    errno = failure;                                                                        \
    return -1;                                                                              \
  }

INTERPOSED(ssize_t, read, int descriptor, void *bytes, size_t size) {
  struct explored *self = explore_current();
  if (!self) return REAL(read)(descriptor, bytes, size);
  // Reading zero bytes from a pipe or a stream socket never waits.
  if (size == 0 && is_stream(descriptor)) return REAL(read)(descriptor, bytes, size);
  if (explore_is_random(descriptor)) {
    explore_fill_random(bytes, size);
    return (ssize_t)size;
  }
  int failure = ready_for(self, descriptor, POLLIN, OP_READ, true, false, HERE);
  if (failure != 0) return explore_result(-failure);
  ssize_t result = REAL(read)(descriptor, bytes, size);
  if (result == 8) explore_count_expirations(descriptor, bytes);
  return result;
}

/// The C library's `write`, or `send` with the flags.
static ssize_t put_once(int descriptor, const void *bytes, size_t size, bool sends, int flags) {
  static ssize_t (*write_)(int, const void *, size_t);
  static ssize_t (*send_)(int, const void *, size_t, int);
  if (sends && !send_) *(void **)&send_ = explore_real("send");
  if (!sends && !write_) *(void **)&write_ = explore_real("write");
  return sends ? send_(descriptor, bytes, size, flags) : write_(descriptor, bytes, size);
}

/// Writes or sends, in parts that do not block. `begun`: the call has written something before these bytes.
static ssize_t put(struct explored *self, int descriptor, const void *bytes, size_t size, bool sends, int flags, bool begun,
                   const void *place) {
  size_t done = 0;
  bool blocks = !sends || blocks_in(flags);
  for (;;) {
    int failure = ready_for(self, descriptor, POLLOUT, OP_WRITE, blocks, begun || done > 0, place);
    if (failure != 0) return done ? (ssize_t)done : explore_result(-failure);
    size_t rest = size - done, part = blocks ? sure_part(descriptor, rest) : rest;
    ssize_t result = put_once(descriptor, (const char *)bytes + done, part, sends, flags);
    if (result < 0) return done ? (ssize_t)done : result;
    done += (size_t)result;
    if (done >= size || result == 0 || !blocks || sure_part(descriptor, size) == size) return (ssize_t)done;
  }
}

INTERPOSED(ssize_t, write, int descriptor, const void *bytes, size_t size) {
  struct explored *self = explore_current();
  if (!self) return REAL(write)(descriptor, bytes, size);
  return put(self, descriptor, bytes, size, false, 0, false, HERE);
}

WAITS(ssize_t, readv, POLLIN, OP_READ, true, LIST(int descriptor, const struct iovec *parts, int count),
      LIST(descriptor, parts, count))
WAITS(int, accept, POLLIN, OP_ACCEPT, true, LIST(int descriptor, struct sockaddr *from, socklen_t *length),
      LIST(descriptor, from, length))
WAITS(int, accept4, POLLIN, OP_ACCEPT, true, LIST(int descriptor, struct sockaddr *from, socklen_t *length, int flags),
      LIST(descriptor, from, length, flags))

// MARK: Calls that wait until all has been transferred

/// Receives as the kernel does without MSG_WAITALL, and then what that flag still asks for.
static ssize_t receive(struct explored *self, int descriptor, struct msghdr *message, int flags, const void *place) {
  static ssize_t (*real)(int, struct msghdr *, int);
  if (!real) *(void **)&real = explore_real("recvmsg");
  int failure = ready_for(self, descriptor, POLLIN, OP_READ, blocks_in(flags), false, place);
  if (failure != 0) return explore_result(-failure);
  bool all = flags & MSG_WAITALL && !(flags & (MSG_PEEK | MSG_DONTWAIT)) && is_stream(descriptor);
  ssize_t done = real(descriptor, message, all ? flags & ~MSG_WAITALL : flags);
  if (!all || done <= 0) return done;
  size_t before = 0;
  for (size_t i = 0; i < message->msg_iovlen; before += message->msg_iov[i++].iov_len) {
    struct iovec rest = message->msg_iov[i];
    while ((size_t)done < before + rest.iov_len) {
      size_t skipped = (size_t)done - before;
      struct iovec part = {(char *)rest.iov_base + skipped, rest.iov_len - skipped};
      struct msghdr next = {.msg_iov = &part, .msg_iovlen = 1};
      if (ready_for(self, descriptor, POLLIN, OP_READ, true, true, place) != 0) return done;
      ssize_t result = real(descriptor, &next, flags & ~MSG_WAITALL);
      if (result <= 0) return done;
      done += result;
    }
  }
  return done;
}

INTERPOSED(ssize_t, recv, int descriptor, void *bytes, size_t size, int flags) {
  struct explored *self = explore_current();
  if (!self) return REAL(recv)(descriptor, bytes, size, flags);
  struct iovec part = {bytes, size};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  return receive(self, descriptor, &message, flags, HERE);
}

INTERPOSED(ssize_t, recvfrom, int descriptor, void *bytes, size_t size, int flags, struct sockaddr *from,
           socklen_t *length) {
  struct explored *self = explore_current();
  if (!self) return REAL(recvfrom)(descriptor, bytes, size, flags, from, length);
  struct iovec part = {bytes, size};
  struct msghdr message = {.msg_name = from, .msg_iov = &part, .msg_iovlen = 1};
  if (from && length) message.msg_namelen = *length;
  ssize_t result = receive(self, descriptor, &message, flags, HERE);
  if (result >= 0 && from && length) *length = message.msg_namelen;
  return result;
}

INTERPOSED(ssize_t, recvmsg, int descriptor, struct msghdr *message, int flags) {
  struct explored *self = explore_current();
  if (!self) return REAL(recvmsg)(descriptor, message, flags);
  return receive(self, descriptor, message, flags, HERE);
}

/// Writes the parts one after the other, behind the first `done` bytes.
static ssize_t put_rest(struct explored *self, int descriptor, const struct iovec *parts, size_t count, size_t done,
                        bool sends, int flags, const void *place) {
  size_t before = 0;
  for (size_t i = 0; i < count; before += parts[i++].iov_len) {
    if (done >= before + parts[i].iov_len) continue;
    const char *bytes = (const char *)parts[i].iov_base + (done - before);
    size_t size = before + parts[i].iov_len - done;
    ssize_t result = put(self, descriptor, bytes, size, sends, flags, done > 0, place);
    if (result < 0) return done ? (ssize_t)done : result;
    done += (size_t)result;
    if ((size_t)result < size) break;
  }
  return (ssize_t)done;
}

INTERPOSED(ssize_t, writev, int descriptor, const struct iovec *parts, int count) {
  struct explored *self = explore_current();
  if (!self) return REAL(writev)(descriptor, parts, count);
  size_t size = count > 0 ? size_of(parts, (size_t)count) : 0;
  int failure = ready_for(self, descriptor, POLLOUT, OP_WRITE, true, false, HERE);
  if (failure != 0) return explore_result(-failure);
  if (sure_part(descriptor, size) < size)
    return put_rest(self, descriptor, parts, (size_t)count, 0, false, 0, HERE);
  return REAL(writev)(descriptor, parts, count);
}

INTERPOSED(ssize_t, sendmsg, int descriptor, const struct msghdr *message, int flags) {
  struct explored *self = explore_current();
  if (!self) return REAL(sendmsg)(descriptor, message, flags);
  int failure = ready_for(self, descriptor, POLLOUT, OP_WRITE, blocks_in(flags), false, HERE);
  if (failure != 0) return explore_result(-failure);
  size_t size = size_of(message->msg_iov, message->msg_iovlen);
  if (!blocks_in(flags) || sure_part(descriptor, size) == size) return REAL(sendmsg)(descriptor, message, flags);
  // What comes with the message comes with its first byte.
  size_t first = 0;
  while (message->msg_iov[first].iov_len == 0) first++;
  struct iovec part = {message->msg_iov[first].iov_base, sure_part(descriptor, message->msg_iov[first].iov_len)};
  struct msghdr begin = *message;
  begin.msg_iov = &part;
  begin.msg_iovlen = 1;
  ssize_t result = REAL(sendmsg)(descriptor, &begin, flags);
  if (result <= 0) return result;
  return put_rest(self, descriptor, message->msg_iov, message->msg_iovlen, (size_t)result, true, flags, HERE);
}

INTERPOSED(ssize_t, sendto, int descriptor, const void *bytes, size_t size, int flags, const struct sockaddr *to,
           socklen_t length) {
  struct explored *self = explore_current();
  if (!self) return REAL(sendto)(descriptor, bytes, size, flags, to, length);
  int failure = ready_for(self, descriptor, POLLOUT, OP_WRITE, blocks_in(flags), false, HERE);
  if (failure != 0) return explore_result(-failure);
  if (blocks_in(flags) && sure_part(descriptor, size) < size)
    return put(self, descriptor, bytes, size, true, flags, false, HERE);
  return REAL(sendto)(descriptor, bytes, size, flags, to, length);
}

INTERPOSED(ssize_t, send, int descriptor, const void *bytes, size_t size, int flags) {
  struct explored *self = explore_current();
  if (!self) return REAL(send)(descriptor, bytes, size, flags);
  return put(self, descriptor, bytes, size, true, flags, false, HERE);
}

static bool leads_out(const struct sockaddr *to) {
  if (to->sa_family == AF_INET) return ((const struct sockaddr_in *)to)->sin_addr.s_addr << 24 != 127u << 24;
  return to->sa_family == AF_INET6 && !IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)to)->sin6_addr);
}

// Sockets within the machine are connected at once.
INTERPOSED(int, connect, int descriptor, const struct sockaddr *to, socklen_t length) {
  struct explored *self = explore_current();
  if (!self) return REAL(connect)(descriptor, to, length);
  if (to && leads_out(to)) explored_file->leaks |= CONCOURSE_EXPLORING_LEAK_OUTSIDE_SOCKET;
  explore_point(self, OP_CONNECT, (void *)(uintptr_t)descriptor, HERE);
  return REAL(connect)(descriptor, to, length);
}

INTERPOSED(int, close, int descriptor) {
  struct explored *self = explore_current();
  if (self && may_block(descriptor)) explore_point(self, OP_CLOSE, (void *)(uintptr_t)descriptor, HERE);
  explore_forget_timer(descriptor);
  int result = REAL(close)(descriptor);
  if (self) explore_let_try_file_locks();
  return result;
}

// eventfd_read and eventfd_write of the C library would call its own read and write.
EXPORTED int eventfd_read(int descriptor, uint64_t *value) {
  return read(descriptor, value, sizeof *value) == sizeof *value ? 0 : -1;
}

EXPORTED int eventfd_write(int descriptor, uint64_t value) {
  return write(descriptor, &value, sizeof value) == sizeof value ? 0 : -1;
}

// MARK: As the compiler calls them if it checks the sizes of buffers

_Noreturn void __chk_fail(void);
static void check(size_t size, size_t room) {
  if (size > room) __chk_fail();
}

EXPORTED ssize_t __read_chk(int descriptor, void *bytes, size_t size, size_t room) {
  check(size, room);
  return read(descriptor, bytes, size);
}

EXPORTED ssize_t __recv_chk(int descriptor, void *bytes, size_t size, size_t room, int flags) {
  check(size, room);
  return recv(descriptor, bytes, size, flags);
}

EXPORTED ssize_t __recvfrom_chk(int descriptor, void *bytes, size_t size, size_t room, int flags, struct sockaddr *from,
                                socklen_t *length) {
  check(size, room);
  return recvfrom(descriptor, bytes, size, flags, from, length);
}

EXPORTED int __poll_chk(struct pollfd *descriptors, nfds_t count, int timeout, size_t room) {
  check(count, room / sizeof *descriptors);
  return poll(descriptors, count, timeout);
}

EXPORTED int __ppoll_chk(struct pollfd *descriptors, nfds_t count, const struct timespec *time, const sigset_t *mask,
                         size_t room) {
  check(count, room / sizeof *descriptors);
  return ppoll(descriptors, count, time, mask);
}
