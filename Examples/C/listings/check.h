// What the listings have in common: checks that say what is wrong and end the program.

#ifndef GUIDE_CHECK_H
#define GUIDE_CHECK_H

#include <dispatch/dispatch.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

// How long to wait for something that must come. Long: it is only waited out by a program that is wrong.
#define SOON dispatch_time(DISPATCH_TIME_NOW, (int64_t)60 * NSEC_PER_SEC)

__attribute__((format(printf, 4, 5)))
static inline void check_at(const char *file, int line, bool holds, const char *format, ...) {
  if (holds) return;
  va_list values;
  va_start(values, format);
  fprintf(stderr, "%s:%d: ", file, line);
  vfprintf(stderr, format, values);
  fputc('\n', stderr);
  va_end(values);
  exit(EXIT_FAILURE);
}

// CHECK(condition, format, values...): ends the program with that line unless the condition holds.
#define CHECK(...) check_at(__FILE__, __LINE__, __VA_ARGS__)

#endif
