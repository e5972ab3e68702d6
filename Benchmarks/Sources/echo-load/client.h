#ifndef ECHO_LOAD_CLIENT_H
#define ECHO_LOAD_CLIENT_H

#include <netinet/in.h>

// One connection to the server, with at most one message under way.
struct client {
  int descriptor;
  // Events that epoll watches it for.
  unsigned watched;
  // Numbers the messages, so that no two in a row are alike.
  unsigned sequence;
  // Bytes of the message that have left, and that have come back.
  long sent, received;
  // Round trips still to be made in this pass.
  long trips;
};

// What is the same for all clients.
struct load {
  int epoll;
  long size;
  struct sockaddr_in server;
  struct client *clients;
  // Random bytes; a message is a window into them.
  unsigned char *pattern;
  long bytes;
};

// Ends the program with a message; `what` failed for the reason in errno unless that is 0.
_Noreturn void fail(const char *what);

// Begins to connect. Loopback clients take their source addresses in turn: one address has too few
// ports for many short connections, each of which lingers for a while after its end.
void open_client(struct load *load, struct client *client, unsigned number);

// Begins a message: sends as much of it as the kernel takes.
void start_message(struct load *load, struct client *client);

// Reads and sends what is possible now. Returns whether the whole message has come back.
int continue_message(struct load *load, struct client *client);

void close_client(struct load *load, struct client *client);

#endif
