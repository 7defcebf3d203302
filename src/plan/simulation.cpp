// Ports and processors as queues.
#include "concord/plan/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "concord/core/check.hpp"

namespace concord::plan {
namespace {

constexpr double kElement = 4;  // bytes of a gradient's number

/// Something that serves one message at a time.
class Queue {
 public:
  explicit Queue(double free = 0) : free_(free) {}
  /// The time at which one that comes at `arrival` begins to be served, for `duration`.
  double serve(double arrival, double duration) {
    const double begin = std::max(arrival, free_);
    free_ = begin + duration;
    return begin;
  }
  [[nodiscard]] double free() const { return free_; }

 private:
  double free_;
};

/// A message on its way: when it comes to the next stage, and where it goes.
struct Message {
  double time;
  int order;  // among those of its sender
  int from, to;
  bool is_inside;
};

bool comes_before(const Message& a, const Message& b) {
  return std::tie(a.time, a.order, a.from) < std::tie(b.time, b.order, b.from);
}

class Exchange {
 public:
  Exchange(const Cluster& cluster, double bytes, Detail detail)
      : cluster_(cluster),
        per_machine_(std::min(cluster.per_machine, cluster.ranks)),
        simulated_(detail == Detail::all ? cluster.ranks : per_machine_),
        part_(std::ceil(bytes / kElement / cluster.ranks) * kElement) {}

  [[nodiscard]] double direct() const {
    std::vector<double> ready(static_cast<std::size_t>(simulated_), 0);
    ready = all_to_all(ready);
    for (double& time : ready) time += cluster_.sum_per_byte * part_ * cluster_.ranks;
    ready = all_to_all(ready);
    return std::ranges::max(ready);
  }

  [[nodiscard]] double ring() const {
    const auto count = static_cast<std::size_t>(simulated_);
    std::vector<double> ready(count, 0);
    std::vector<Queue> ports(count);
    const int rounds = 2 * (cluster_.ranks - 1);
    std::vector<double> received(count);
    for (int round = 0; round < rounds; ++round) {
      const double sum = 2 * (round + 1) <= rounds ? cluster_.sum_per_byte * part_ : 0;
      for (std::size_t from = 0; from < count; ++from) {
        const std::size_t to = (from + 1) % count;
        const int next = (static_cast<int>(from) + 1) % cluster_.ranks;
        const bool is_inside = machine_of(next) == machine_of(static_cast<int>(from));
        const Link& link = is_inside ? cluster_.inside : cluster_.between;
        const double begin = ports[from].serve(ready[from] + link.overhead, link.occupancy(part_));
        received[to] = begin + link.latency + link.occupancy(part_) + link.overhead + sum;
      }
      ready = received;
    }
    return std::ranges::max(ready);
  }

 private:
  [[nodiscard]] std::size_t machine_of(int rank) const { return static_cast<std::size_t>(rank / per_machine_); }

  /// When each rank has its last message, if it begins to send at `ready`.
  [[nodiscard]] std::vector<double> all_to_all(const std::vector<double>& ready) const {
    std::vector<Message> messages;
    messages.reserve(ready.size() * static_cast<std::size_t>(cluster_.ranks - 1));
    std::vector<double> busy = ready;  // processors send first
    for (int order = 1; order < cluster_.ranks; ++order) {
      for (int from = 0; from < simulated_; ++from) {
        const int to = (from + order) % cluster_.ranks;
        const bool is_inside = machine_of(to) == machine_of(from);
        double& processor = busy[static_cast<std::size_t>(from)];
        processor += (is_inside ? cluster_.inside : cluster_.between).overhead;
        messages.push_back({processor, order, from, to % simulated_, is_inside});
      }
    }
    pass(
        messages, [](const Message& message) { return message.from; }, true);
    pass(
        messages, [](const Message& message) { return message.to; }, false);
    std::vector<Queue> processors(busy.begin(), busy.end());
    std::ranges::sort(messages, comes_before);
    for (const Message& message : messages) {
      const Link& link = message.is_inside ? cluster_.inside : cluster_.between;
      processors[static_cast<std::size_t>(message.to)].serve(message.time, link.overhead);
    }
    std::vector<double> done;
    for (const Queue& processor : processors) done.push_back(processor.free());
    return done;
  }

  /// Through the ports at one end: of the sender, from which the first byte takes the latency to the receiver's, or of
  /// the receiver, until the last byte.
  template <class End>
  void pass(std::vector<Message>& messages, const End& end, bool is_sender) const {
    std::vector<Queue> own(static_cast<std::size_t>(simulated_)), of_machine(machine_of(simulated_ - 1) + 1);
    std::ranges::sort(messages, comes_before);
    for (Message& message : messages) {
      const int rank = end(message);
      const Link& link = message.is_inside ? cluster_.inside : cluster_.between;
      Queue& port = message.is_inside ? own[static_cast<std::size_t>(rank)] : of_machine[machine_of(rank)];
      const double duration = link.occupancy(part_);
      message.time = port.serve(message.time, duration) + (is_sender ? link.latency : duration);
    }
  }

  const Cluster& cluster_;
  int per_machine_, simulated_;
  double part_;  // bytes of a message
};

}  // namespace

double exchange_seconds(const Cluster& cluster, double bytes, Algorithm algorithm, Detail detail) {
  CONCORD_CHECK(cluster.ranks >= 1 && cluster.per_machine >= 1, ArgumentError,
                "a cluster has at least one rank, and one on each machine");
  CONCORD_CHECK(cluster.ranks <= cluster.per_machine || cluster.ranks % cluster.per_machine == 0, ArgumentError,
                "{} ranks do not fill machines of {}; the number of ranks must be a multiple of those of a machine",
                cluster.ranks, cluster.per_machine);
  if (cluster.ranks == 1) return 0;
  const Exchange exchange(cluster, bytes, detail);
  return algorithm == Algorithm::direct ? exchange.direct() : exchange.ring();
}

}  // namespace concord::plan
