// Plain C at the rows whose work is mostly the kernel's: epoll and read(2), with as little around them as possible.
#define _GNU_SOURCE
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

// MARK: A pipe: a thread that waits in epoll, and a semaphore

struct court {
  int epoll, reading, writing;
  long trips;
  sem_t answer;
};

static void *answer(void *argument) {
  struct court *court = argument;
  struct epoll_event event;
  char byte;
  for (;;) {
    if (epoll_wait(court->epoll, &event, 1, -1) != 1) continue;
    ssize_t count = read(court->reading, &byte, 1);
    if (count == 0) return NULL;
    verify(count, 1, "bytes in the pipe");
    court->trips++;
    sem_post(&court->answer);
  }
}

static struct measurement pipe_event(long count) {
  struct court court;
  int ends[2];
  verify(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0, "pipe2");
  court.reading = ends[0];
  court.writing = ends[1];
  sem_init(&court.answer, 0, 0);
  court.epoll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN};
  verify(epoll_ctl(court.epoll, EPOLL_CTL_ADD, court.reading, &event), 0, "epoll_ctl");
  pthread_t thread;
  verify(pthread_create(&thread, NULL, answer, &court), 0, "pthread_create");

  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    court.trips = 0;
    long start = bench_now();
    for (long trip = 0; trip < count; trip++) {
      verify(write(court.writing, "x", 1), 1, "bytes written");
      while (sem_wait(&court.answer) != 0) continue;
    }
    bench_record(&passes, bench_now() - start);
    verify(court.trips, count, "events handled");
  }
  close(court.writing);
  pthread_join(thread, NULL);
  return per_operation(&passes, count, count);
}

// MARK: Echo: one thread, one level-triggered epoll set; a readable connection is read once and written once

enum { batch = 256, timed_passes = 3, message = 128, buffer_size = 1024 };

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

static struct measurement measure_echo(int connections, long trips) {
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
  if (bench_run_echo_load(port, connections, trips, timed_passes, &nanoseconds, &bytes) != 0) exit(70);
  pthread_join(thread, NULL);
  // Each connection makes one more round trip, by which the load knows that it is accepted.
  verify(bytes, (connections + (timed_passes + 1) * trips) * message, "bytes that came back");
  verify(server.bytes, bytes, "bytes that the server echoed");
  verify(server.accepted, connections, "connections accepted");
  return (struct measurement){(double)nanoseconds / (double)trips, trips, bytes};
}

static struct measurement echo_1(long trips) { return measure_echo(1, trips); }
static struct measurement echo_64(long trips) { return measure_echo(64, trips); }
static struct measurement echo_1000(long trips) { return measure_echo(1000, trips); }

// MARK: A cached file: read(2) into one buffer

enum { window = 256 << 10 };

static struct measurement read_file(long bytes) {
  int file = bench_make_cached_file(bytes);
  unsigned char *buffer = malloc(window);
  verify(file >= 0 && buffer, 1, "a temporary file");
  uint64_t first = 0;
  struct bench_passes passes = {0};
  while (bench_next_pass(&passes)) {
    long offset = 0, start = bench_now();
    uint64_t sample = 0;
    verify(lseek(file, 0, SEEK_SET), 0, "lseek");
    for (ssize_t count; (count = read(file, buffer, window)) != 0; offset += count) {
      verify(count > 0, 1, "a read succeeded");
      sample += bench_sample(buffer, count, offset);
    }
    bench_record(&passes, bench_now() - start);
    verify(offset, bytes, "bytes read");
    if (passes.begun == 1) first = sample;
    verify((long)sample, (long)first, "the sample of the bytes read");
  }
  return (struct measurement){(double)passes.quickest / 1e9, bytes, (long)(first >> 1)};
}

static const struct row rows[] = {
    {"pipe-event-round-trip", pipe_event, 20000, "a thread that waits in epoll, and a semaphore", NULL},
    {"echo-1-connection", echo_1, 20000, "an epoll loop in one thread", NULL},
    {"echo-64-connections", echo_64, 200000, "an epoll loop in one thread", NULL},
    {"echo-1000-connections", echo_1000, 200000, "an epoll loop in one thread", NULL},
    {"read-cached-file", read_file, 1L << 30, "read(2) in a loop, 256 KiB each", "s"},
    {0},
};

int main(int count, char **words) { return run_rows(count, words, (const struct row *const[]){rows, NULL}); }
