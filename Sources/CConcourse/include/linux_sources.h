// Process calls and structures that the Glibc module lacks, or imports as unions that Swift cannot read.

#ifndef CONCOURSE_LINUX_SOURCES_H
#define CONCOURSE_LINUX_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A close-on-exec descriptor that becomes readable when the process has ended, or -errno.
int concourse_process_open(int32_t identifier);

/// Whether a child can be reaped now; the child is not reaped. A negative `descriptor` selects the process by
/// `identifier`. Returns 1, 0 or -errno: -ECHILD if the process is not a child.
int concourse_process_look(int descriptor, int32_t identifier);

/// A netlink connector socket for process events, or -errno.
int concourse_connector_socket(void);
/// Subscribes the socket to the kernel's announcements. Returns 0 or -errno.
int concourse_connector_bind(int socket);
/// Asks the kernel to announce forks and execs. `narrowed` excludes all other announcements, on kernels that support
/// it. Returns 0 or -errno.
int concourse_connector_listen(int socket, bool narrowed);

/// One announcement of the kernel.
struct concourse_process_news {
  /// The kernel's answer to `concourse_connector_listen`: 0 for success, else an errno.
  bool is_answer;
  uint32_t answer;
  /// The process that forked or called exec.
  int32_t identifier;
  bool has_forked;
  bool has_called_exec;
};
/// Reads the next announcement without waiting. Returns 1, 0 for an announcement to ignore, or -errno: -EAGAIN when
/// there is none, -ENOBUFS when announcements were lost.
int concourse_connector_read(int socket, struct concourse_process_news *_Nonnull news);

#endif
