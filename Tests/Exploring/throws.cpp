// Exceptions out of functions of the exploring library: the body of a `once` throws, and the next call runs it again.
#include <mutex>
#include <pthread.h>
#include <thread>

static pthread_once_t posix = PTHREAD_ONCE_INIT;
static std::once_flag standard;
static int posix_runs, standard_runs, caught;

static void throw_first() {
  if (posix_runs++ == 0) throw 1;
}

static void call() {
  try {
    pthread_once(&posix, throw_first);
  } catch (int) {
    caught++;
  }
  try {
    std::call_once(standard, [] {
      if (standard_runs++ == 0) throw 1;
    });
  } catch (int) {
    caught++;
  }
}

int main() {
  std::thread first(call);
  first.join();
  std::thread second(call), third(call);
  second.join();
  third.join();
  return posix_runs != 2 || standard_runs != 2 || caught != 2;
}
