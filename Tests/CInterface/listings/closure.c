// A block that captures two values, handed out by a function and called with a third one later.

#include "listing.h"
#include <Block.h>

typedef int (^fare_t)(int kilometers);

// The copy lives on after this function has returned, until the caller releases it.
static fare_t make_fare(int base, int per_kilometer) {
  return Block_copy(^(int kilometers) { return base + per_kilometer * kilometers; });
}

int main(void) {
  fare_t fare = make_fare(250, 180);
  printf("7 km: %d cents\n", fare(7));
  CHECK(fare(1) == 430 && fare(7) == 1510, "1 km costs %d, and 7 km cost %d", fare(1), fare(7));
  Block_release(fare);
  return 0;
}
