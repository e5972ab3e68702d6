// Heavy work at a user's request, and its result on the main queue.

#include "listing.h"
#include <string.h>

enum { SIZE = 256 };

// What is on the screen. Items of the main queue alone touch it.
static unsigned char *shown;

// Rings around the middle.
static unsigned char *paint(void) {
  unsigned char *pixels = malloc(SIZE * SIZE);
  for (int y = 0; y < SIZE; y++) {
    for (int x = 0; x < SIZE; x++) {
      int right = x - SIZE / 2, down = y - SIZE / 2;
      pixels[y * SIZE + x] = (unsigned char)(right * right + down * down);
    }
  }
  return pixels;
}

int main(void) {
  dispatch_queue_t main_queue = dispatch_get_main_queue();
  // The user waits for the result, so the priority is high.
  dispatch_async(dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_HIGH, 0), ^{
    unsigned char *picture = paint();
    dispatch_async(main_queue, ^{
      dispatch_assert_queue(main_queue);
      shown = picture;
      const unsigned char *middle = shown + SIZE / 2 * SIZE + SIZE / 2;
      CHECK(middle[0] == 0 && middle[3] == 9, "the middle is %d, and %d further on", middle[0], middle[3]);
      printf("shown: %d pixels\n", SIZE * SIZE);
      free(shown);
      exit(EXIT_SUCCESS);
    });
  });
  dispatch_main();
}
