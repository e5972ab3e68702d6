// Load for a TCP echo server, the same for every server: one thread, one epoll set, every byte compared.
#define _GNU_SOURCE
#include "client.h"
#include "options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

enum { batch = 256, patience = 60000 };

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

// Waits for events; a server that is silent for a minute has failed.
static int await(struct load *load, struct epoll_event *events) {
  int count = epoll_wait(load->epoll, events, batch, patience);
  if (count < 0 && errno == EINTR) return 0;
  if (count < 0) fail("epoll_wait");
  errno = 0;
  if (count == 0) fail("the server did not answer for a minute");
  return count;
}

// Every client makes its share of the round trips: a server that starves some is as slow as those are.
static long pass(struct load *load, const struct options *options) {
  struct epoll_event events[batch];
  long share = options->round_trips / options->connections, unfinished = options->connections;
  long start = now();
  for (int index = 0; index < options->connections; index++) {
    load->clients[index].trips = share + (index < options->round_trips % options->connections);
    if (load->clients[index].trips > 0) start_message(load, &load->clients[index]);
    else unfinished--;
  }
  while (unfinished > 0) {
    int count = await(load, events);
    for (int index = 0; index < count; index++) {
      struct client *client = events[index].data.ptr;
      if (!continue_message(load, client)) continue;
      if (--client->trips > 0) start_message(load, client);
      else unfinished--;
    }
  }
  return now() - start;
}

// Connects all clients, and returns when each has had an answer: then the server has accepted it.
static void open_all(struct load *load, const struct options *options) {
  struct epoll_event events[batch];
  // Not more at once than fit into a listener's backlog.
  int opened = 0, answered = 0;
  while (answered < options->connections) {
    for (; opened < options->connections && opened - answered < 100; opened++)
      open_client(load, &load->clients[opened], (unsigned)opened);
    int count = await(load, events);
    for (int index = 0; index < count; index++) {
      struct client *client = events[index].data.ptr;
      if (!client->sequence) start_message(load, client);
      else if (continue_message(load, client)) answered++;
    }
  }
}

static long churn(struct load *load, const struct options *options) {
  struct epoll_event events[batch];
  long opened = 0, closed = 0, start = now();
  for (; opened < options->connections && opened < options->churn; opened++)
    open_client(load, &load->clients[opened], (unsigned)opened);
  while (closed < options->churn) {
    int count = await(load, events);
    for (int index = 0; index < count; index++) {
      struct client *client = events[index].data.ptr;
      // Not connected yet: now it is.
      if (client->watched == (EPOLLIN | EPOLLOUT) && client->sent == 0) {
        start_message(load, client);
      } else if (continue_message(load, client)) {
        close_client(load, client);
        client->sent = 0;
        closed++;
        if (opened < options->churn) open_client(load, client, (unsigned)opened++);
      }
    }
  }
  return now() - start;
}

int main(int count, char **words) {
  struct options options = parse_options(count, words);
  struct load load = {.size = options.size, .server = {.sin_family = AF_INET}};
  load.server.sin_port = htons((uint16_t)options.port);
  errno = 0;
  if (inet_pton(AF_INET, options.host, &load.server.sin_addr) != 1) fail("--host is no IPv4 address");

  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  load.epoll = epoll_create1(EPOLL_CLOEXEC);
  if (load.epoll < 0) fail("epoll_create1");
  load.clients = calloc((size_t)options.connections, sizeof *load.clients);
  load.pattern = malloc((size_t)options.size + 4096);
  if (!load.clients || !load.pattern) fail("memory");
  uint64_t state = 88172645463325252;
  for (long index = 0; index < options.size + 4096; index++) {
    state = state * 6364136223846793005 + 1442695040888963407;
    load.pattern[index] = (unsigned char)(state >> 56);
  }

  long best = 0;
  if (options.churn) {
    best = churn(&load, &options);
  } else {
    open_all(&load, &options);
    pass(&load, &options);
    for (int index = 0; index < options.passes; index++) {
      long time = pass(&load, &options);
      if (index == 0 || time < best) best = time;
    }
    for (int index = 0; index < options.connections; index++) close_client(&load, &load.clients[index]);
  }
  printf("%ld %ld\n", best, load.bytes);
  return fflush(stdout) == 0 ? 0 : 1;
}
