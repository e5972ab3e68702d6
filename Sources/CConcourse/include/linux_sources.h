// Processes: what the Glibc module does not carry, or carries as unions that Swift cannot read.

#ifndef CONCOURSE_LINUX_SOURCES_H
#define CONCOURSE_LINUX_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A close-on-exec descriptor that becomes readable when the process has ended; -errno if refused.
int concourse_process_open(int32_t identifier);

/// Whether a child could be reaped now. Leaves it as it is. The process is named by its descriptor, or by
/// its identifier if `descriptor` is negative. Returns 1 or 0, or -errno: -ECHILD for what is no child.
int concourse_process_look(int descriptor, int32_t identifier);

/// A socket on which the kernel can tell of processes; -errno if refused.
int concourse_connector_socket(void);
/// Lets the socket hear the kernel's announcements. Returns 0 or -errno.
int concourse_connector_bind(int socket);
/// Asks the kernel to announce forks and execs. With `narrowed`, and a kernel that can do it, nothing else.
/// Returns a number not below 0, or -errno.
int concourse_connector_listen(int socket, bool narrowed);

/// What the kernel has announced.
struct concourse_process_news {
  /// The kernel has answered `concourse_connector_listen`: with 0 it agreed, else with an errno.
  bool is_answer;
  uint32_t answer;
  /// The process that forked or called exec.
  int32_t identifier;
  bool has_forked;
  bool has_called_exec;
};
/// Takes the next announcement, without waiting. Returns 1, or 0 for one that is of no interest, or -errno:
/// -EAGAIN when there is none, -ENOBUFS when some have been lost.
int concourse_connector_read(int socket, struct concourse_process_news *_Nonnull news);

#endif
