// What waits for the outside: whether anything that is not in the process could let a thread go on.

#include "exploring.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/// Whether the socket takes messages from any sender: it is bound, and connected to none.
static bool is_receiver(int descriptor) {
  int type;
  socklen_t size = sizeof type;
  struct sockaddr_storage own, other;
  if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_DGRAM) return false;
  size = sizeof other;
  if (getpeername(descriptor, (struct sockaddr *)&other, &size) == 0) return false;
  size = sizeof own;
  if (getsockname(descriptor, (struct sockaddr *)&own, &size) != 0) return false;
  switch (own.ss_family) {
    case AF_INET: return ((const struct sockaddr_in *)&own)->sin_port != 0;
    case AF_INET6: return ((const struct sockaddr_in6 *)&own)->sin6_port != 0;
    case AF_UNIX: return size > sizeof own.ss_family;
    default: return false;
  }
}

/// Whether a client could make it ready. `depth`: of epoll descriptors in one another.
static bool can_serve(int descriptor, int depth) {
  enum { DEEPEST = 4 };
  int listens = 0;
  socklen_t size = sizeof listens;
  if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0) return listens || is_receiver(descriptor);
  if (errno != ENOTSOCK || depth > DEEPEST) return false;
  char path[64], text[8192];
  snprintf(path, sizeof path, "/proc/self/fdinfo/%d", descriptor);
  size_t length = explore_read_file(path, text, sizeof text);
  // A set of so many descriptors is a server's. The kernel's order of them is another each time.
  if (length >= sizeof text - 1) return true;
  if (length == 0) return false;
  for (const char *next = text; (next = strstr(next, "tfd:"));) {
    next += 4;
    if (can_serve((int)strtol(next, NULL, 10), depth + 1)) return true;
  }
  return false;
}

bool explore_can_serve(const struct pollfd *descriptors, uint32_t count) {
  int failure = errno;
  bool found = false;
  for (uint32_t i = 0; i < count && !found; i++) found = descriptors[i].fd >= 0 && can_serve(descriptors[i].fd, 0);
  errno = failure;
  return found;
}

enum outside explore_outside(void) {
  bool ended;
  if (explored_file->leaks & CONCOURSE_EXPLORING_LEAK_OUTSIDE_SOCKET || explore_has_children(&ended)) return OUTSIDE_OTHERS;
  enum outside found = OUTSIDE_NOTHING;
  for (uint32_t i = 0; i < explored_live_count; i++) {
    const struct explored *thread = explored_live[i];
    if (thread->serves_outside) found = OUTSIDE_CLIENT;
    if (thread->wakes & WAKES_LOCK && explore_others_have_file_lock(thread)) return OUTSIDE_OTHERS;
    if (!(thread->wakes & WAKES_DESCRIPTORS)) continue;
    for (uint32_t k = 0; k < thread->descriptor_count; k++)
      if (thread->descriptors[k].fd == STDIN_FILENO) return OUTSIDE_OTHERS;
    if (explore_can_serve(thread->descriptors, thread->descriptor_count)) found = OUTSIDE_CLIENT;
  }
  return found;
}

_Noreturn void explore_finish_waiting(uint32_t outcome) {
  enum outside outside = explore_outside();
  // The first run says how many steps are expected, if it has ended by itself.
  bool waits = outside == OUTSIDE_OTHERS || (outside == OUTSIDE_CLIENT && explored_file->expected_steps == 0);
  bool is_stuck = explore_find_cycle() != NULL;
  explore_finish(waits && !is_stuck ? CONCOURSE_EXPLORING_WAITS_FOR_OUTSIDE : outcome, 0, 0);
}
