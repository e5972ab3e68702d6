// oneTBB at the rows for which it has a counterpart.
#include "rows.h"

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_group.h>

#include <cstdint>
#include <tuple>
#include <vector>

namespace {

// One counter for each index, touched only by that index's task.
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
measurement fanOut(long count) {
  Slots slots(count);
  bench_passes passes{};
  while (bench_next_pass(&passes)) {
    oneapi::tbb::task_group group;
    long start = bench_now();
    for (long index = 0; index < count; index++) group.run([&slots, index] { slots.mark(index); });
    group.wait();
    bench_record(&passes, bench_now() - start);
    verify(slots.takeMarkedOnce(), count, "tasks that ran exactly once");
  }
  return per_operation(&passes, count, count);
}

// Hop: two serial nodes of a flow graph; each message makes the next one for the other node.
measurement hop(long count) {
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
  bench_passes passes{};
  while (bench_next_pass(&passes)) {
    hops = 0;
    long start = bench_now();
    even.try_put(count);
    graph.wait_for_all();
    bench_record(&passes, bench_now() - start);
    verify(hops, count, "hops, one after the other");
  }
  return per_operation(&passes, count, hops);
}

// Parallel loop over an empty body; an untimed loop of the same size counts the visits.
measurement parallelLoop(long count) {
  bench_passes passes{};
  while (bench_next_pass(&passes)) {
    long start = bench_now();
    oneapi::tbb::parallel_for(0L, count, [](long index) { bench_opaque(index); });
    bench_record(&passes, bench_now() - start);
  }
  Slots slots(count);
  oneapi::tbb::parallel_for(0L, count, [&slots](long index) { slots.mark(index); });
  long visited = slots.takeMarkedOnce();
  verify(visited, count, "indices visited exactly once");
  return per_operation(&passes, count, visited);
}

const row rows[] = {
    {"global-async-group-wait", fanOut, 500'000, "task_group: run and wait", nullptr},
    {"concurrent-perform-empty-body", parallelLoop, 10'000'000, "parallel_for over 10 million indices", nullptr},
    {"hop-between-serial-queues", hop, 300'000, "flow graph: two serial nodes in a ring", nullptr},
    {},
};

}  // namespace

int main(int count, char **words) {
  const row *const families[] = {rows, nullptr};
  return run_rows(count, words, families);
}
