#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: echo-load --port=N [--host=ADDRESS] [--connections=N] [--size=BYTES]\n"
    "                 [--round-trips=N] [--passes=N] | [--churn=N]\n"
    "\n"
    "Puts a TCP echo server under load from one thread and compares every byte that comes back.\n"
    "\n"
    "  --host=ADDRESS    an IPv4 address (127.0.0.1)\n"
    "  --connections=N   connections open at the same time (1)\n"
    "  --size=BYTES      bytes of a message (128)\n"
    "  --round-trips=N   messages there and back in a pass, shared out evenly (10000); each connection\n"
    "                    has one message under way\n"
    "  --passes=N        timed passes after one warm-up pass; the quickest counts (3)\n"
    "  --churn=N         no passes: open N connections in all, each for a single round trip\n"
    "\n"
    "Prints the nanoseconds of the quickest pass (with --churn: of everything) and the number of bytes\n"
    "that came back in all passes. Exit status: 0; 1 the server failed; 2 the command line is wrong.\n";

static long number(const char *word, const char *value, long least, long most) {
  char *end;
  long result = strtol(value, &end, 10);
  if (*value && !*end && result >= least && result <= most) return result;
  fprintf(stderr, "echo-load: %s: a number from %ld to %ld is wanted\n", word, least, most);
  exit(2);
}

struct options parse_options(int count, char **words) {
  struct options options = {
      .host = "127.0.0.1", .connections = 1, .round_trips = 10000, .passes = 3, .size = 128};
  for (int index = 1; index < count; index++) {
    const char *word = words[index], *equals = strchr(word, '=');
    if (strcmp(word, "--help") == 0) {
      fputs(usage, stdout);
      exit(0);
    }
    size_t length = equals ? (size_t)(equals - word) : 0;
    const char *value = equals ? equals + 1 : "";
#define IS(name) (length == sizeof(name) - 1 && strncmp(word, name, length) == 0)
    if (IS("--host")) options.host = value;
    else if (IS("--port")) options.port = (int)number(word, value, 1, 65535);
    else if (IS("--connections")) options.connections = (int)number(word, value, 1, 1000000);
    else if (IS("--round-trips")) options.round_trips = number(word, value, 1, 1000000000);
    else if (IS("--passes")) options.passes = (int)number(word, value, 1, 1000);
    else if (IS("--size")) options.size = number(word, value, 1, 1 << 30);
    else if (IS("--churn")) options.churn = number(word, value, 1, 1000000000);
    else {
      fprintf(stderr, "echo-load: no such option: %s\n%s", word, usage);
      exit(2);
    }
#undef IS
  }
  if (!options.port) {
    fprintf(stderr, "echo-load: --port is missing\n");
    exit(2);
  }
  return options;
}
