// The rival oneTBB at the rows where it has the same thing to offer. It answers to --list and
// --row NAME [--quick] in the format of the Swift programs: NAME value operations check.

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_group.h>

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

namespace {

// The same empty body as everywhere: no instruction, and not removable.
inline void opaque(long value) { __asm__ volatile("" : : "r"(value) : "memory"); }

long now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000L + time.tv_nsec;
}

void verify(long observed, long expected, const char *what) {
  if (observed == expected) return;
  std::fprintf(stderr, "rival failed: %s: expected %ld, observed %ld\n", what, expected, observed);
  std::exit(70);
}

struct Measurement {
  double value;
  long operations;
  long check;
};

// The quickest of three passes after one warm-up pass.
double nanosecondsPerOperation(long operations, const std::function<long()> &pass) {
  pass();
  long best = std::numeric_limits<long>::max();
  for (int index = 0; index < 3; index++) best = std::min(best, pass());
  return double(best) / double(operations);
}

// One counter for each index, touched by that index's task alone.
class Slots {
 public:
  explicit Slots(long count) : counters(count, 0) {}
  void mark(long index) { counters[index] += 1; }
  long takeMarkedOnce() {
    long once = 0;
    for (auto &counter : counters) {
      if (counter == 1) once += 1;
      counter = 0;
    }
    return once;
  }

 private:
  std::vector<std::int32_t> counters;
};

// Fan-out: one thread spawns tasks into a group, then waits for the group.
Measurement fanOut(long count) {
  Slots slots(count);
  double value = nanosecondsPerOperation(count, [&] {
    oneapi::tbb::task_group group;
    long start = now();
    for (long index = 0; index < count; index++) group.run([&slots, index] { slots.mark(index); });
    group.wait();
    long time = now() - start;
    verify(slots.takeMarkedOnce(), count, "tasks that ran exactly once");
    return time;
  });
  return {value, count, count};
}

// Hop: two serial nodes of a flow graph; each message makes the next one for the other node.
Measurement hop(long count) {
  namespace flow = oneapi::tbb::flow;
  using Node = flow::multifunction_node<long, std::tuple<long>>;
  long hops = 0;
  flow::graph graph;
  auto body = [&hops](long remaining, Node::output_ports_type &ports) {
    hops += 1;
    if (remaining > 1) std::get<0>(ports).try_put(remaining - 1);
  };
  Node even(graph, flow::serial, body);
  Node odd(graph, flow::serial, body);
  flow::make_edge(flow::output_port<0>(even), odd);
  flow::make_edge(flow::output_port<0>(odd), even);
  double value = nanosecondsPerOperation(count, [&] {
    hops = 0;
    long start = now();
    even.try_put(count);
    graph.wait_for_all();
    long time = now() - start;
    verify(hops, count, "hops, one after the other");
    return time;
  });
  return {value, count, hops};
}

// Parallel loop over an empty body; an untimed loop of the same size counts the visits.
Measurement parallelLoop(long count) {
  double value = nanosecondsPerOperation(count, [&] {
    long start = now();
    oneapi::tbb::parallel_for(0L, count, [](long index) { opaque(index); });
    return now() - start;
  });
  Slots slots(count);
  oneapi::tbb::parallel_for(0L, count, [&slots](long index) { slots.mark(index); });
  long visited = slots.takeMarkedOnce();
  verify(visited, count, "indices visited exactly once");
  return {value, count, visited};
}

struct Row {
  const char *name;
  const char *question;
  long count;
  Measurement (*measure)(long count);
};

const Row rows[] = {
    {"global-async-group-wait", "task_group: run and wait", 500'000, fanOut},
    {"concurrent-perform-empty-body", "parallel_for over 10 million indices", 10'000'000, parallelLoop},
    {"hop-between-serial-queues", "flow graph: two serial nodes in a ring", 300'000, hop},
};

}  // namespace

int main(int count, char **arguments) {
  std::string name;
  long divisor = 1;
  bool list = false;
  for (int index = 1; index < count; index++) {
    if (!std::strcmp(arguments[index], "--list")) list = true;
    if (!std::strcmp(arguments[index], "--quick")) divisor = 10;
    if (!std::strcmp(arguments[index], "--row") && index + 1 < count) name = arguments[++index];
  }
  for (const Row &row : rows) {
    if (list) std::printf("%s\tns\t%s\n", row.name, row.question);
    if (name != row.name) continue;
    Measurement result = row.measure(row.count / divisor);
    std::printf("%s %.6f %ld %ld\n", row.name, result.value, result.operations, result.check);
    return 0;
  }
  if (list) return 0;
  std::fprintf(stderr, "usage: --list | --row NAME [--quick]\n");
  return 64;
}
