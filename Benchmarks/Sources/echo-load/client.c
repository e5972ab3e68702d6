#define _GNU_SOURCE
#include "client.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

_Noreturn void fail(const char *what) {
  fprintf(stderr, errno ? "echo-load: %s: %s\n" : "echo-load: %s\n", what, strerror(errno));
  exit(1);
}

static void watch(struct load *load, struct client *client, unsigned events, int operation) {
  struct epoll_event event = {.events = events, .data = {.ptr = client}};
  if (epoll_ctl(load->epoll, operation, client->descriptor, &event) != 0) fail("epoll_ctl");
  client->watched = events;
}

static void want(struct load *load, struct client *client, unsigned events) {
  if (client->watched != events) watch(load, client, events, EPOLL_CTL_MOD);
}

void open_client(struct load *load, struct client *client, unsigned number) {
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
  if (descriptor < 0) fail("socket");
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  unsigned host = ntohl(load->server.sin_addr.s_addr);
  if (host >> 24 == 127) {
    struct sockaddr_in source = {
        .sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK + number % 16)}};
    setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(descriptor, (struct sockaddr *)&source, sizeof source) != 0) fail("bind");
  }
  if (connect(descriptor, (struct sockaddr *)&load->server, sizeof load->server) != 0 &&
      errno != EINPROGRESS)
    fail("connect");
  client->descriptor = descriptor;
  // Writable once connected.
  watch(load, client, EPOLLIN | EPOLLOUT, EPOLL_CTL_ADD);
}

static unsigned char *message(struct load *load, struct client *client) {
  unsigned start = (unsigned)(client - load->clients) * 131 + client->sequence * 17;
  return load->pattern + start % 4096;
}

static void send_more(struct load *load, struct client *client) {
  while (client->sent < load->size) {
    ssize_t count = send(
        client->descriptor, message(load, client) + client->sent, (size_t)(load->size - client->sent),
        MSG_NOSIGNAL);
    if (count >= 0) {
      client->sent += count;
    } else if (errno == EAGAIN) {
      want(load, client, EPOLLIN | EPOLLOUT);
      return;
    } else if (errno != EINTR) {
      fail("send");
    }
  }
  want(load, client, EPOLLIN);
}

void start_message(struct load *load, struct client *client) {
  client->sequence++;
  client->sent = client->received = 0;
  send_more(load, client);
}

int continue_message(struct load *load, struct client *client) {
  static unsigned char buffer[1 << 16];
  if (client->sent < load->size) send_more(load, client);
  ssize_t count = recv(client->descriptor, buffer, sizeof buffer, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (count < 0) fail("recv");
  errno = 0;
  if (count == 0) fail("the server closed a connection");
  if (client->received + count > client->sent) fail("more came back than was sent");
  if (memcmp(buffer, message(load, client) + client->received, (size_t)count) != 0)
    fail("other bytes came back than were sent");
  client->received += count;
  load->bytes += count;
  return client->received == load->size;
}

void close_client(struct load *load, struct client *client) {
  // It leaves the epoll set with its only descriptor.
  (void)load;
  if (close(client->descriptor) != 0) fail("close");
  client->descriptor = -1;
}
