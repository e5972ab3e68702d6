// For the thread sanitizer under the exploring library: static variables, locks and atomics of C++, threads and locks of
// C11. With an argument, a variable is changed before the thread has been joined that changes it, too.

#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>
#include <threads.h>
#include <vector>

static std::mutex mutex;
static int total;

struct Slow {
  int value;
  Slow() {
    // Another thread comes to the variable meanwhile.
    std::lock_guard<std::mutex> guard(mutex);
    value = 7;
    total++;
  }
};

static Slow &slow() {
  static Slow one;
  return one;
}

static std::atomic<int> is_ready{0};
static int published;

static mtx_t lock;
static int count;
static int count_up(void *) {
  mtx_lock(&lock);
  count++;
  mtx_unlock(&lock);
  return 0;
}

int main(int arguments, char **) {
  std::vector<std::thread> threads;
  std::once_flag once;
  for (int i = 0; i < 3; i++)
    threads.emplace_back([&] {
      int value = slow().value;
      std::call_once(once, [&] { published += value; });
      std::lock_guard<std::mutex> guard(mutex);
      total += value;
    });
  for (auto &thread : threads) thread.join();
  std::thread publisher([] {
    published = 5;
    is_ready.store(1, std::memory_order_release);
  });
  while (!is_ready.load(std::memory_order_acquire)) std::this_thread::yield();
  published++;
  publisher.join();

  thrd_t first, second;
  mtx_init(&lock, mtx_plain);
  if (thrd_create(&first, count_up, nullptr) != thrd_success || thrd_create(&second, count_up, nullptr) != thrd_success)
    return 2;
  thrd_join(first, nullptr);
  if (arguments == 1) thrd_join(second, nullptr);
  count++;
  if (arguments > 1) thrd_join(second, nullptr);
  return total == 22 && published == 6 && count == 3 ? 0 : 3;
}
