// oneTBB at the rows about many processors for which it has a counterpart. The rows are those of bench-scaling.
#include "rows.h"

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/rw_mutex.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <semaphore.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace {

constexpr long window = 1'000, indices = 10'000;
const int processors = bench_core_count();

class Semaphore {
 public:
  explicit Semaphore(unsigned value) { sem_init(&semaphore, 0, value); }
  ~Semaphore() { sem_destroy(&semaphore); }
  void signal() { sem_post(&semaphore); }
  void wait() {
    while (sem_wait(&semaphore) != 0) continue;
  }

 private:
  sem_t semaphore;
};

// Returns the nanoseconds of a thread for each processor.
long onThreads(bool pinned, const std::function<void(int)> &body) {
  return bench_time_threads(
      processors, pinned,
      [](void *context, int thread) { (*static_cast<const std::function<void(int)> *>(context))(thread); },
      const_cast<std::function<void(int)> *>(&body));
}

// MARK: Submissions

// A worker for each processor beside the threads that submit, which do not help. oneTBB has one worker less than there
// are processors otherwise: on one processor, none.
oneapi::tbb::task_arena &workers() {
  static oneapi::tbb::global_control limit(oneapi::tbb::global_control::max_allowed_parallelism, processors + 1);
  static oneapi::tbb::task_arena arena(processors + 1);
  return arena;
}

namespace flow = oneapi::tbb::flow;

// A node of a flow graph that takes one message at a time, in order.
struct SerialNode {
  flow::graph graph;
  counter items{};
  flow::function_node<Semaphore *, flow::continue_msg> node;
  // The graph's tasks run in the arena in which it is made.
  static std::unique_ptr<SerialNode> make() {
    return workers().execute([] { return std::make_unique<SerialNode>(); });
  }
  SerialNode()
      : node(graph, flow::serial, [this](Semaphore *room) {
          items.value++;
          if (room) room->signal();
        }) {}
};

void submit(long units, SerialNode &serial) {
  Semaphore room(2);
  for (long unit = 0; unit < units; unit++) {
    room.wait();
    for (long item = 1; item < window; item++) serial.node.try_put(nullptr);
    serial.node.try_put(&room);
  }
  room.wait();
  room.wait();
}

long oneSerialQueue(long units, long *nanoseconds) {
  auto serial = SerialNode::make();
  *nanoseconds = onThreads(false, [&](int) { submit(units, *serial); });
  workers().execute([&] { serial->graph.wait_for_all(); });
  verify(serial->items.value, processors * units * window, "items that excluded each other");
  return serial->items.value;
}

long serialQueueEach(long units, long *nanoseconds) {
  std::vector<std::unique_ptr<SerialNode>> nodes;
  for (int thread = 0; thread < processors; thread++) nodes.push_back(SerialNode::make());
  *nanoseconds = onThreads(false, [&](int thread) { submit(units, *nodes[thread]); });
  long items = 0;
  for (auto &serial : nodes) {
    workers().execute([&] { serial->graph.wait_for_all(); });
    items += serial->items.value;
  }
  verify(items, processors * units * window, "items");
  return items;
}

struct Countdown {
  counter left{};
  Semaphore done{1};
  void finishOne() {
    long now = bench_count_down(&left.value);
    if (now == 0) done.signal();
    verify(now >= 0, 1, "no item ran twice");
  }
};

long globalQueue(long units, long *nanoseconds) {
  auto &arena = workers();
  *nanoseconds = onThreads(false, [&](int) {
    Countdown halves[2];
    for (long unit = 0; unit < units; unit++) {
      Countdown *half = &halves[unit % 2];
      half->done.wait();
      half->left.value = window;
      for (long item = 0; item < window; item++) arena.enqueue([half] { half->finishOne(); });
    }
    for (auto &half : halves) half.done.wait();
  });
  return processors * units * window;
}

long group(long units, long *nanoseconds) {
  *nanoseconds = onThreads(false, [&](int) {
    std::vector<int> slots(window, 0);
    for (long unit = 0; unit < units; unit++) {
      oneapi::tbb::task_group group;
      for (long item = 0; item < window; item++) group.run([&slots, item] { slots[item]++; });
      group.wait();
      for (long item = 0; item < window; item++) verify(slots[item], unit + 1, "runs of an item");
    }
  });
  return processors * units * window;
}

// MARK: Entries

long readers(long units, long *nanoseconds) {
  oneapi::tbb::rw_mutex mutex;
  long value = 1;
  std::vector<long> sums(processors, 0);
  *nanoseconds = onThreads(true, [&](int thread) {
    long sum = 0;
    for (long entry = 0; entry < units * window; entry++) {
      oneapi::tbb::rw_mutex::scoped_lock lock(mutex, false);
      bench_opaque(entry);
      sum += value;
    }
    sums[thread] = sum;
  });
  long sum = 0;
  for (long part : sums) sum += part;
  verify(sum, processors * units * window, "the sum of what was read");
  return sum;
}

long contended(long units, long *nanoseconds) {
  oneapi::tbb::mutex mutex;
  counter entries{};
  *nanoseconds = onThreads(true, [&](int) {
    for (long entry = 0; entry < units * window; entry++) {
      oneapi::tbb::mutex::scoped_lock lock(mutex);
      bench_opaque(entry);
      entries.value++;
    }
  });
  verify(entries.value, processors * units * window, "entries that excluded each other");
  return entries.value;
}

// MARK: Parallel loop

long parallelLoop(long units, long *nanoseconds) {
  long start = bench_now();
  oneapi::tbb::parallel_for(0L, units * indices, [](long index) { bench_opaque(index); });
  *nanoseconds = bench_now() - start;
  std::vector<char> slots(indices, 0);
  oneapi::tbb::parallel_for(0L, indices, [&slots](long index) { slots[index]++; });
  long visited = 0;
  for (char slot : slots) visited += slot == 1;
  verify(visited, indices, "indices visited exactly once");
  return units * indices;
}

// Each does so many units of work, and returns how many operations that was.
const struct {
  const char *name;
  long (*pass)(long units, long *nanoseconds);
  const char *question;
} rows[] = {
    {"async-one-serial-queue", oneSerialQueue, "a serial node of a flow graph"},
    {"async-serial-queue-each", serialQueueEach, "a serial node of a flow graph for each thread"},
    {"async-global-queue", globalQueue, "task_arena::enqueue"},
    {"group", group, "task_group: run and wait"},
    {"readers", readers, "rw_mutex"},
    {"sync-contended", contended, "mutex"},
    {"parallel-loop", parallelLoop, "parallel_for, whose body is inlined"},
};

}  // namespace

int main(int count, char **words) {
  const char *name = "";
  bench_point point{};
  point.milliseconds = 300;
  for (int index = 1; index < count; index++) {
    if (std::strcmp(words[index], "--list") == 0) {
      for (auto &row : rows) std::printf("%s\t1/s\t%s\n", row.name, row.question);
      return 0;
    }
    if (index + 1 == count) break;
    if (std::strcmp(words[index], "--row") == 0) name = words[++index];
    else if (std::strcmp(words[index], "--milliseconds") == 0) point.milliseconds = std::atol(words[++index]);
  }
  for (auto &row : rows) {
    if (std::strcmp(row.name, name) != 0) continue;
    while (bench_next_pass_of_point(&point)) {
      long nanoseconds = 0, operations = row.pass(point.units, &nanoseconds);
      bench_record_point(&point, operations, nanoseconds);
    }
    std::printf("%s %f %ld %ld\n", row.name, point.best, point.operations, point.operations);
    return 0;
  }
  std::fprintf(stderr, "usage: --list | --row NAME [--milliseconds N]\n");
  return 64;
}
