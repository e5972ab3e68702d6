// An echo server as one would write it in C: one thread, one level-triggered epoll set; a readable
// connection is read once and written once.
#define _GNU_SOURCE
#include "cbench.h"
#include "rival.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { batch = 256, passes = 3, message = 128, buffer_size = 1024 };

struct server {
  int epoll, listener, connections;
  long accepted, closed, bytes;
};

static void watch(struct server *server, int descriptor) {
  struct epoll_event event = {.events = EPOLLIN, .data = {.fd = descriptor}};
  verify(epoll_ctl(server->epoll, EPOLL_CTL_ADD, descriptor, &event), 0, "epoll_ctl");
}

static void accept_all(struct server *server) {
  int connection;
  while ((connection = bench_accept(server->listener)) >= 0) {
    server->accepted++;
    watch(server, connection);
  }
  verify(errno, EAGAIN, "errno of accept");
}

static void echo(struct server *server, int connection) {
  char buffer[buffer_size];
  ssize_t count = read(connection, buffer, sizeof buffer);
  if (count < 0) {
    verify(errno, EAGAIN, "errno of read");
  } else if (count == 0) {
    close(connection);
    server->closed++;
  } else {
    verify(send(connection, buffer, (size_t)count, MSG_NOSIGNAL), count, "bytes written");
    server->bytes += count;
  }
}

static void *serve(void *argument) {
  struct server *server = argument;
  struct epoll_event events[batch];
  while (server->closed < server->connections) {
    int count = epoll_wait(server->epoll, events, batch, -1);
    if (count < 0) verify(errno, EINTR, "errno of epoll_wait");
    for (int index = 0; index < count; index++) {
      if (events[index].data.fd == server->listener) accept_all(server);
      else echo(server, events[index].data.fd);
    }
  }
  return NULL;
}

struct measurement measure_echo(int connections, long trips) {
  bench_raise_descriptor_limit();
  int port = 0;
  struct server server = {.connections = connections};
  server.epoll = epoll_create1(EPOLL_CLOEXEC);
  server.listener = bench_listen(&port);
  verify(server.epoll >= 0 && server.listener >= 0, 1, "the server listens");
  watch(&server, server.listener);
  pthread_t thread;
  verify(pthread_create(&thread, NULL, serve, &server), 0, "pthread_create");

  long nanoseconds = 0, bytes = 0;
  if (bench_run_echo_load(port, connections, trips, passes, &nanoseconds, &bytes) != 0) exit(70);
  pthread_join(thread, NULL);
  // One more of each connection: it tells the load that it is accepted.
  verify(bytes, (connections + (passes + 1) * trips) * message, "bytes that came back");
  verify(server.bytes, bytes, "bytes that the server echoed");
  verify(server.accepted, connections, "connections accepted");
  return (struct measurement){(double)nanoseconds / (double)trips, trips, bytes};
}
