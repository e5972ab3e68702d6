// A block captures two numbers of its scope, and prints them with its argument.

#include "listing.h"

int main(void) {
  int first = 3;
  int second = 4;
  __block int sum = 0;
  void (^print)(int) = ^(int third) {
    printf("captured %d and %d, called with %d\n", first, second, third);
    sum = first * 100 + second * 10 + third;
  };
  // The block has copies: it does not see this.
  first = second = 0;
  print(5);
  CHECK(sum == 345, "the block saw the digits of %d instead of 345", sum);
  return 0;
}
