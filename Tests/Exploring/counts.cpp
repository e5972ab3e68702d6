// Threads that count while they spin on an atomic variable, without any call. `never`: no thread sets it. `lost`: what comes
// after the spin is a lost update. `computes`: a loop that no other thread can end, and that is not one that counts.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {
enum { WORKERS = 3 };
std::atomic<bool> isReady{false};
std::atomic<int> turn{0}, ended{0};
volatile uint64_t rounds, total;
std::mutex mutex;
int count;

/// Each worker counts elsewhere: in a register, in its stack, in a variable of the program, or up to a limit again and again.
uint64_t await(int worker) {
  uint64_t local = 0;
  volatile uint64_t onStack = 0;
  switch (worker) {
    case 0:
      while (!isReady.load(std::memory_order_acquire)) local++;
      return local;
    case 1:
      while (!isReady.load()) onStack = onStack + 1;
      return onStack;
    case 2:
      while (!isReady) rounds = rounds + 1;
      return rounds;
    default:
      for (;;)
        for (int i = 0; i < 1000; i++)
          if (isReady.load(std::memory_order_relaxed)) return uint64_t(i);
  }
}

void work(int worker) {
  total = total + await(worker);
  for (int i = 0; i < 3; i++) {
    std::lock_guard<std::mutex> guard(mutex);
    count++;
  }
  ended++;
}

/// Two threads pass a turn on, each as a lock of its own that spins and counts.
void pass(int own, std::atomic<int> &shared, bool isLost) {
  for (int i = 0; i < 2; i++) {
    volatile unsigned spins = 0;
    while (shared.load() % 2 != own) spins = spins + 1;
    if (isLost) {
      int seen = count;
      mutex.lock();
      mutex.unlock();
      count = seen + 1;
    }
    shared++;
  }
}

/// A quarter of a second in which the state neither ascends nor descends, and stays in no range.
uint64_t scatter() {
  uint64_t state = 1;
  for (uint64_t i = 0; i < 150000000; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    __asm__ volatile("" : "+r"(state));
  }
  return state;
}

/// A quarter of a second in which the sum ascends, but not in proportion to the rounds.
uint64_t add() {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 750000000; i++) {
    sum = sum + i;
    __asm__ volatile("" : "+r"(sum));
  }
  return sum;
}
}  // namespace

int main(int arguments, char **names) {
  const char *what = arguments > 1 ? names[1] : "";
  if (strcmp(what, "never") == 0) {
    std::thread worker([] { total = await(1); });
    total = await(0);
    worker.join();
    return 1;
  }
  if (strcmp(what, "computes") == 0) {
    std::thread worker([] { std::lock_guard<std::mutex> guard(mutex); });
    uint64_t result = scatter();
    mutex.lock();
    mutex.unlock();
    result += add();
    worker.join();
    return result == 0;
  }
  std::vector<std::thread> threads;
  if (strcmp(what, "lost") == 0) {
    // The one who counts without the turn.
    threads.emplace_back([] { pass(0, turn, true); });
    threads.emplace_back([] { pass(1, turn, true); });
    threads.emplace_back([] {
      while (turn.load() == 0) rounds = rounds + 1;
      int seen = count;
      mutex.lock();
      mutex.unlock();
      count = seen + 1;
    });
    for (auto &thread : threads) thread.join();
    return count == 5 ? 0 : 3;
  }
  auto shared = std::make_unique<std::atomic<int>>(0);
  for (int i = 0; i <= WORKERS; i++) threads.emplace_back(work, i);
  threads.emplace_back([&] { pass(0, *shared, false); });
  threads.emplace_back([&] { pass(1, *shared, false); });
  std::thread setter([] {
    std::lock_guard<std::mutex> guard(mutex);
    isReady = true;
  });
  uint64_t spins = 0;
  while (ended.load() <= WORKERS) spins++;
  total = total + spins;
  for (auto &thread : threads) thread.join();
  setter.join();
  return count == 3 * (WORKERS + 1) ? 0 : 2;
}
