// Shared by the listings: a check that prints what is wrong and ends the program.

#ifndef LISTING_H
#define LISTING_H

#include <dispatch/dispatch.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

// How long to wait for an event that must come. Only a failing program waits so long.
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

// Whether the program runs on our library, which has sources that the toolchain's lacks.
static inline bool on_concourse(void) { return dlsym(RTLD_DEFAULT, "_dispatch_source_type_proc") != NULL; }

#endif
