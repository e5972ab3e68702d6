// Load for a TCP echo server, the same for every server: one thread, one epoll set, every byte compared.
#define _GNU_SOURCE
#include "cbench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

// MARK: Options

static const char usage[] =
    "usage: echo-load --port=N [--host=ADDRESS] [--connections=N] [--size=BYTES]\n"
    "                 [--round-trips=N | --milliseconds=N [--processes=N]] [--passes=N] | [--churn=N]\n"
    "\n"
    "Puts a TCP echo server under load from one thread and compares every byte that comes back.\n"
    "\n"
    "  --host=ADDRESS    an IPv4 address (127.0.0.1)\n"
    "  --connections=N   connections open at the same time (1)\n"
    "  --size=BYTES      bytes of a message (128)\n"
    "  --round-trips=N   messages there and back in a pass, shared out evenly (10000); each connection\n"
    "                    has one message in flight\n"
    "  --milliseconds=N  a pass ends after this time instead; each connection makes as many as it can\n"
    "  --processes=N     processes of one thread that share the connections (1)\n"
    "  --passes=N        timed passes after one warm-up pass; the quickest counts (3)\n"
    "  --churn=N         no passes: open N connections in all, each for a single round trip\n"
    "\n"
    "Prints the nanoseconds of the quickest pass (with --churn: of everything) and the number of bytes\n"
    "that came back in all passes; with --milliseconds those of the pass with most round trips in a\n"
    "second, and their number. Exit status: 0; 1 the server failed; 2 the command line is wrong.\n";

static const char *host = "127.0.0.1";
static long port, connections = 1, round_trips = 10000, passes = 3, size = 128;
// The time of a pass, or 0 if `round_trips` says its length; and how many processes share the connections then.
static long milliseconds, processes = 1;
// Connections to open in all; 0: open `connections` and keep them.
static long churn;

static const struct option {
  const char *name;
  long *value, least, most;
} options[] = {
    {"--port=", &port, 1, 65535},
    {"--connections=", &connections, 1, 1000000},
    {"--round-trips=", &round_trips, 1, 1000000000},
    {"--milliseconds=", &milliseconds, 1, 1000000},
    {"--processes=", &processes, 1, 1000},
    {"--passes=", &passes, 1, 1000},
    {"--size=", &size, 1, 1 << 30},
    {"--churn=", &churn, 1, 1000000000},
};

static void set(const struct option *option, const char *value) {
  char *end;
  *option->value = strtol(value, &end, 10);
  if (*value && !*end && *option->value >= option->least && *option->value <= option->most) return;
  fprintf(stderr, "echo-load: %s needs a number from %ld to %ld\n", option->name, option->least, option->most);
  exit(2);
}

static void parse(const char *word) {
  if (strcmp(word, "--help") == 0) {
    fputs(usage, stdout);
    exit(0);
  }
  if (strncmp(word, "--host=", 7) == 0) {
    host = word + 7;
    return;
  }
  for (size_t index = 0; index < sizeof options / sizeof *options; index++) {
    size_t length = strlen(options[index].name);
    if (strncmp(word, options[index].name, length) != 0) continue;
    set(&options[index], word + length);
    return;
  }
  fprintf(stderr, "echo-load: no such option: %s\n%s", word, usage);
  exit(2);
}

// Ends the program with a message: `what` failed, for the reason in errno unless that is 0.
static _Noreturn void fail(const char *what) {
  fprintf(stderr, errno ? "echo-load: %s: %s\n" : "echo-load: %s\n", what, strerror(errno));
  exit(1);
}

// MARK: Clients

// One connection to the server, with at most one message in flight.
struct client {
  int descriptor;
  // Events that epoll watches it for.
  unsigned watched;
  // Numbers the messages, so that no two in a row are alike.
  unsigned sequence;
  // Bytes of the message that were sent, and that came back.
  long sent, received;
  // Round trips left in this pass.
  long trips;
};

static int epoll;
static struct sockaddr_in server = {.sin_family = AF_INET};
static struct client *clients;
// Random bytes; a message is a window into them.
static unsigned char *pattern;
static long bytes;

static void watch(struct client *client, unsigned events, int operation) {
  struct epoll_event event = {.events = events, .data = {.ptr = client}};
  if (epoll_ctl(epoll, operation, client->descriptor, &event) != 0) fail("epoll_ctl");
  client->watched = events;
}

static void want(struct client *client, unsigned events) {
  if (client->watched != events) watch(client, events, EPOLL_CTL_MOD);
}

// Begins to connect. Loopback clients take their source addresses in turn: one address has too few ports for many short
// connections, since a port stays in use for a while after the connection's end.
static void open_client(struct client *client, unsigned number) {
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
  if (descriptor < 0) fail("socket");
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (ntohl(server.sin_addr.s_addr) >> 24 == 127) {
    struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK + number % 16)}};
    setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(descriptor, (struct sockaddr *)&source, sizeof source) != 0) fail("bind");
  }
  if (connect(descriptor, (struct sockaddr *)&server, sizeof server) != 0 && errno != EINPROGRESS) fail("connect");
  client->descriptor = descriptor;
  // Writable once connected.
  watch(client, EPOLLIN | EPOLLOUT, EPOLL_CTL_ADD);
}

static void close_client(struct client *client) {
  // The epoll set drops a client with its only descriptor.
  if (close(client->descriptor) != 0) fail("close");
  client->descriptor = -1;
}

static unsigned char *message(struct client *client) {
  unsigned start = (unsigned)(client - clients) * 131 + client->sequence * 17;
  return pattern + start % 4096;
}

static void send_more(struct client *client) {
  while (client->sent < size) {
    ssize_t count =
        send(client->descriptor, message(client) + client->sent, (size_t)(size - client->sent), MSG_NOSIGNAL);
    if (count >= 0) {
      client->sent += count;
    } else if (errno == EAGAIN) {
      want(client, EPOLLIN | EPOLLOUT);
      return;
    } else if (errno != EINTR) {
      fail("send");
    }
  }
  want(client, EPOLLIN);
}

// Begins a message: sends as much of it as the kernel takes.
static void start_message(struct client *client) {
  client->sequence++;
  client->sent = client->received = 0;
  send_more(client);
}

// Reads and sends what is possible now. Returns whether the whole message has come back.
static bool continue_message(struct client *client) {
  static unsigned char buffer[1 << 16];
  if (client->sent < size) send_more(client);
  ssize_t count = recv(client->descriptor, buffer, sizeof buffer, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count < 0) fail("recv");
  errno = 0;
  if (count == 0) fail("the server closed a connection");
  if (client->received + count > client->sent) fail("more came back than was sent");
  if (memcmp(buffer, message(client) + client->received, (size_t)count) != 0)
    fail("other bytes came back than were sent");
  client->received += count;
  bytes += count;
  return client->received == size;
}

// MARK: Load

enum { batch = 256, patience = 60000 };

// Waits for events. A server that is silent for a minute has failed.
static int await(struct epoll_event *events) {
  int count = epoll_wait(epoll, events, batch, patience);
  if (count < 0 && errno == EINTR) return 0;
  if (count < 0) fail("epoll_wait");
  errno = 0;
  if (count == 0) fail("the server did not answer for a minute");
  return count;
}

// Connects all clients, and returns when each has had an answer, so that the server has accepted it.
static void open_all(void) {
  struct epoll_event events[batch];
  // Not more at once than fit into a listener's backlog.
  long opened = 0, answered = 0;
  while (answered < connections) {
    for (; opened < connections && opened - answered < 100; opened++) open_client(&clients[opened], (unsigned)opened);
    int count = await(events);
    for (int index = 0; index < count; index++) {
      struct client *client = events[index].data.ptr;
      if (!client->sequence) start_message(client);
      else if (continue_message(client)) answered++;
    }
  }
}

// Every client makes its share of the round trips: a server that starves a client is as slow as that client.
static long pass(void) {
  struct epoll_event events[batch];
  long share = round_trips / connections, unfinished = connections, start = bench_now();
  for (long index = 0; index < connections; index++) {
    clients[index].trips = share + (index < round_trips % connections);
    if (clients[index].trips > 0) start_message(&clients[index]);
    else unfinished--;
  }
  while (unfinished > 0) {
    int count = await(events);
    for (int index = 0; index < count; index++) {
      struct client *client = events[index].data.ptr;
      if (!continue_message(client)) continue;
      if (--client->trips > 0) start_message(client);
      else unfinished--;
    }
  }
  return bench_now() - start;
}

static long quickest_pass(void) {
  open_all();
  struct bench_passes loop = {.timed = (int)passes};
  while (bench_next_pass(&loop)) bench_record(&loop, pass());
  for (long index = 0; index < connections; index++) close_client(&clients[index]);
  return loop.quickest;
}

// MARK: Passes of a given time, by several processes

// What the processes share.
struct sharing {
  pthread_barrier_t barrier;
  // Of the best pass.
  long nanoseconds, trips;
  // Of each process: round trips of the pass, and bytes of all passes.
  struct { long trips, bytes; } of[1000];
};

static long timed_pass(void) {
  struct epoll_event events[batch];
  long trips = 0, unfinished = connections, end = bench_now() + milliseconds * 1000000;
  for (long index = 0; index < connections; index++) start_message(&clients[index]);
  while (unfinished > 0) {
    int count = await(events);
    bool is_over = bench_now() >= end;
    for (int index = 0; index < count; index++) {
      struct client *client = events[index].data.ptr;
      if (!continue_message(client)) continue;
      trips++;
      if (is_over) unfinished--;
      else start_message(client);
    }
  }
  return trips;
}

// One of the processes. Every pass begins when all of them are ready, and is over when the last has its answers.
static void timed_passes(struct sharing *sharing, int number) {
  epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) fail("epoll_create1");
  open_all();
  for (long number_of_pass = 0; number_of_pass <= passes; number_of_pass++) {
    pthread_barrier_wait(&sharing->barrier);
    long start = bench_now();
    sharing->of[number].trips = timed_pass();
    pthread_barrier_wait(&sharing->barrier);
    if (number > 0) continue;
    long trips = 0, nanoseconds = bench_now() - start;
    for (long index = 0; index < processes; index++) trips += sharing->of[index].trips;
    bool is_best = (double)trips * (double)sharing->nanoseconds > (double)sharing->trips * (double)nanoseconds;
    // The first pass warms up.
    if (number_of_pass == 1 || (number_of_pass > 1 && is_best)) {
      sharing->trips = trips;
      sharing->nanoseconds = nanoseconds;
    }
  }
  sharing->of[number].bytes = bytes;
  for (long index = 0; index < connections; index++) close_client(&clients[index]);
}

static void run_processes(void) {
  struct sharing *sharing = mmap(NULL, sizeof *sharing, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (sharing == MAP_FAILED) fail("mmap");
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  if (processes > connections) processes = connections;
  pthread_barrier_init(&sharing->barrier, &attributes, (unsigned)processes);
  long share = connections / processes, rest = connections % processes;
  pid_t parent = getpid();
  for (int number = 0; number < processes; number++) {
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child > 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) _exit(1);
    connections = share + (number < rest);
    timed_passes(sharing, number);
    _exit(0);
  }
  for (long ended = 0; ended < processes; ended++) {
    int status = 0;
    if (wait(&status) > 0 && status == 0) continue;
    // The others wait for the one that failed. They end with this process.
    errno = 0;
    fail("a process of the load failed");
  }
  for (long index = 0; index < processes; index++) bytes += sharing->of[index].bytes;
  printf("%ld %ld %ld\n", sharing->nanoseconds, bytes, sharing->trips);
}

static long open_and_close(void) {
  struct epoll_event events[batch];
  long opened = 0, closed = 0, start = bench_now();
  for (; opened < connections && opened < churn; opened++) open_client(&clients[opened], (unsigned)opened);
  while (closed < churn) {
    int count = await(events);
    for (int index = 0; index < count; index++) {
      struct client *client = events[index].data.ptr;
      // Watched for writing with nothing sent: it has just connected.
      if (client->watched == (EPOLLIN | EPOLLOUT) && client->sent == 0) {
        start_message(client);
      } else if (continue_message(client)) {
        close_client(client);
        client->sent = 0;
        closed++;
        if (opened < churn) open_client(client, (unsigned)opened++);
      }
    }
  }
  return bench_now() - start;
}

int main(int count, char **words) {
  for (int index = 1; index < count; index++) parse(words[index]);
  if (!port) {
    fprintf(stderr, "echo-load: --port is missing\n");
    return 2;
  }
  server.sin_port = htons((uint16_t)port);
  errno = 0;
  if (inet_pton(AF_INET, host, &server.sin_addr) != 1) fail("--host is not an IPv4 address");

  bench_raise_descriptor_limit();
  clients = calloc((size_t)connections, sizeof *clients);
  pattern = malloc((size_t)size + 4096);
  if (!clients || !pattern) fail("memory");
  uint64_t state = 88172645463325252;
  for (long index = 0; index < size + 4096; index++) {
    state = state * 6364136223846793005 + 1442695040888963407;
    pattern[index] = (unsigned char)(state >> 56);
  }
  if (milliseconds > 0) {
    run_processes();
    return fflush(stdout) == 0 ? 0 : 1;
  }
  epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) fail("epoll_create1");
  long nanoseconds = churn ? open_and_close() : quickest_pass();
  printf("%ld %ld\n", nanoseconds, bytes);
  return fflush(stdout) == 0 ? 0 : 1;
}
