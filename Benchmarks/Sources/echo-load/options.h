#ifndef ECHO_LOAD_OPTIONS_H
#define ECHO_LOAD_OPTIONS_H

// What the command line asks for.
struct options {
  const char *host;
  int port;
  int connections;
  long round_trips;
  int passes;
  long size;
  // Connections to open in all; 0: open `connections` and keep them.
  long churn;
};

// Ends the program if the command line makes no sense.
struct options parse_options(int count, char **words);

#endif
