#define _GNU_SOURCE
#include "include/CConcourse.h"

#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

int concourse_process_open(int32_t identifier) {
  // The kernel makes pidfds close-on-exec.
  int descriptor = concourse_above_standard((int)syscall(SYS_pidfd_open, identifier, 0));
  return descriptor >= 0 ? (int)descriptor : -errno;
}

int concourse_process_look(int descriptor, int32_t identifier) {
  enum { by_descriptor = 3 };  // P_PIDFD, which older headers lack
  siginfo_t found;
  // waitid leaves it untouched when no child can be reaped.
  memset(&found, 0, sizeof found);
  int failed = waitid(descriptor >= 0 ? (idtype_t)by_descriptor : P_PID,
                      descriptor >= 0 ? (id_t)descriptor : (id_t)identifier, &found,
                      WEXITED | WNOHANG | WNOWAIT);
  if (failed) return -errno;
  return found.si_pid != 0;
}

int concourse_connector_socket(void) {
  int made =
      concourse_above_standard(socket(AF_NETLINK, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_CONNECTOR));
  if (made < 0) return -errno;
  // Room for a burst of forks. Without it a burst overflows the buffer sooner; the reader notices that.
  int room = 1 << 20;
  (void)setsockopt(made, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
  return made;
}

int concourse_connector_bind(int socket) {
  struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
  return bind(socket, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : -errno;
}

int concourse_connector_listen(int socket, bool narrowed) {
  enum { kind_fork = 1, kind_exec = 2 };
  // The header, the envelope, the operation. Kernels since 6.6 accept event kinds after the operation; older ones
  // accept the operation alone, which means all kinds.
  uint32_t body[2] = {PROC_CN_MCAST_LISTEN, kind_fork | kind_exec};
  const size_t body_size = narrowed ? sizeof body : sizeof body[0];
  struct nlmsghdr header = {
      .nlmsg_len = (uint32_t)(sizeof header + sizeof(struct cn_msg) + body_size), .nlmsg_type = NLMSG_DONE};
  struct cn_msg envelope = {.id = {.idx = CN_IDX_PROC, .val = CN_VAL_PROC}, .len = (uint16_t)body_size};
  struct iovec parts[] = {{&header, sizeof header}, {&envelope, sizeof envelope}, {body, body_size}};
  struct msghdr request = {.msg_iov = parts, .msg_iovlen = sizeof parts / sizeof parts[0]};
  ssize_t sent = sendmsg(socket, &request, 0);
  return sent >= 0 ? 0 : -errno;
}

int concourse_connector_read(int socket, struct concourse_process_news *news) {
  // Larger than any announcement, and aligned for its parts.
  _Alignas(8) unsigned char message[1024];
  struct sockaddr_nl sender;
  socklen_t sender_size = sizeof sender;
  memset(news, 0, sizeof *news);
  ssize_t length = recvfrom(socket, message, sizeof message, 0, (struct sockaddr *)&sender, &sender_size);
  if (length < 0) return -errno;
  // Other processes may write to this socket too. Only the kernel's port number is 0.
  if (sender_size != sizeof sender || sender.nl_pid != 0) return 0;
  const size_t least = sizeof(struct nlmsghdr) + sizeof(struct cn_msg) + offsetof(struct proc_event, event_data);
  if ((size_t)length < least + sizeof(((struct proc_event *)0)->event_data.fork)) return 0;
  const struct cn_msg *envelope = (const struct cn_msg *)(message + sizeof(struct nlmsghdr));
  if (envelope->id.idx != CN_IDX_PROC || envelope->id.val != CN_VAL_PROC) return 0;
  struct proc_event event;
  memset(&event, 0, sizeof event);
  size_t rest = (size_t)length - sizeof(struct nlmsghdr) - sizeof(struct cn_msg);
  memcpy(&event, envelope->data, rest < sizeof event ? rest : sizeof event);
  // Numbers, because the enumeration moved between kernel headers.
  switch ((uint32_t)event.what) {
  case 0:
    news->is_answer = true;
    news->answer = event.event_data.ack.err;
    return 1;
  case 1:
    // Threads are announced like processes, but a thread belongs to an existing process.
    if (event.event_data.fork.child_pid != event.event_data.fork.child_tgid) return 0;
    news->identifier = event.event_data.fork.parent_tgid;
    news->has_forked = true;
    return 1;
  case 2:
    news->identifier = event.event_data.exec.process_tgid;
    news->has_called_exec = true;
    return 1;
  default:
    return 0;
  }
}
