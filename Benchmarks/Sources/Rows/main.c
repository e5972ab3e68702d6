// bench-c: the rows about the C interface, in one binary for whichever libdispatch.so the loader finds.
#include "rows.h"

extern const struct row submit_rows[], sync_rows[], coordination_rows[], objects_rows[], timers_rows[], events_rows[];

int main(int count, char **words) {
  const struct row *const families[] = {submit_rows, sync_rows, coordination_rows, objects_rows, timers_rows,
                                        events_rows, NULL};
  return run_rows(count, words, families);
}
