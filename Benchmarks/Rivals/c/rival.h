#ifndef RIVAL_H
#define RIVAL_H

struct measurement {
  // In the row's unit.
  double value;
  long operations, check;
};

struct measurement measure_echo(int connections, long trips);
struct measurement measure_pipe_event(long trips);
struct measurement measure_file(long bytes);

long now(void);
void verify(long observed, long expected, const char *what);

#endif
