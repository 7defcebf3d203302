// The choice of cuts, by dynamic programming over the places between layers with parameters.
#include "concord/train/stage_plan.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/graph/operator.hpp"

namespace concord::train {
namespace {

/// As many FLOPs take about as long as moving a byte on the device …
constexpr double kFlopsAByte = 10;
/// … and a byte that goes to another device as long as so many.
constexpr double kBytesAByteSent = 16;
/// A graph that does not train says what parameters take, not what gradients, sums and states do beside them.
constexpr std::size_t kCopiesInTraining = 4;

double cost_of_node(const Node& node) {
  if (!node.op || node.op->is_alias()) return 0;
  std::vector<TensorSpec> inputs;
  for (const Value& input : node.inputs) inputs.push_back(input.spec());
  const Cost cost = node.op->cost(inputs, node.outputs);
  return std::max(cost.bytes, cost.flops / kFlopsAByte);
}

/// A parameter that several nodes read. One stage keeps it, and others that read it have more of it.
struct SharedParameter {
  std::vector<std::int32_t> readers;  // in order
  std::size_t bytes = 0;
  bool is_trained = false, is_averaged = false;

  /// What a stage of the places [from, to) has of it, but for what Sums::variables counts where it is read first.
  [[nodiscard]] std::size_t bytes_beside(std::int32_t from, std::int32_t to) const;
};

std::size_t SharedParameter::bytes_beside(std::int32_t from, std::int32_t to) const {
  const auto reader = std::ranges::lower_bound(readers, from);
  if (reader == readers.end() || *reader >= to) return 0;
  // The home takes the gradients of the others, one at a time; the others have a gradient and the values.
  if (reader == readers.begin()) return is_trained && readers.back() >= to ? bytes : 0;
  return bytes * (1 + (is_trained ? 1 : 0) + (is_averaged ? 1 : 0));
}

/// What a graph says about each place of its forward pass, as sums up to it.
struct Sums {
  Sums(const ForwardOrder& order, std::span<const Value> results);
  std::vector<double> time;                         // of the nodes before a place
  std::vector<std::size_t> variables, activations;  // bytes; activations are those that the backward pass reads
  std::vector<std::size_t> across;                  // bytes that go over a cut before a place
  std::vector<SharedParameter> shared;
};

std::vector<SharedParameter> shared_of(const ForwardOrder& order, bool trains) {
  const Graph& graph = order.graph();
  std::map<Value, SharedParameter> all;
  for (const std::int32_t reader : order.readers_of_parameters()) {
    for (const Value& input : graph.node(reader).inputs) {
      if (order.is_parameter(input)) all[input].readers.push_back(reader);
    }
  }
  std::set<std::string> assigned, averaged;
  for (const Assignment& assignment : graph.assignments()) {
    const Variable& variable = *assignment.variable.node().variable;
    assigned.insert(assignment.variable.name());
    if (variable.role == VariableRole::average) averaged.insert(variable.of);
  }
  std::vector<SharedParameter> shared;
  for (auto& [value, parameter] : all) {
    if (parameter.readers.front() == parameter.readers.back()) continue;
    parameter.bytes = value.spec().bytes();
    parameter.is_trained = trains ? assigned.contains(value.name()) : value.node().variable->trainable;
    parameter.is_averaged = averaged.contains(value.name());
    shared.push_back(std::move(parameter));
  }
  return shared;
}

Sums::Sums(const ForwardOrder& order, std::span<const Value> results) {
  const Graph& graph = order.graph();
  const auto places = static_cast<std::size_t>(graph.size()) + 1;
  time.assign(places + 1, 0);
  variables.assign(places + 1, 0);
  activations.assign(places + 1, 0);
  across.assign(places + 1, 0);
  bool trains = false;
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (order.place(id) == ForwardOrder::kAnywhere) continue;
    const auto after = static_cast<std::size_t>(order.place(id)) + 1;
    if (node.variable) variables[after] += node.outputs[0].bytes();
    if (node.pass != Pass::update) time[after] += cost_of_node(node);
    trains = trains || node.pass == Pass::gradient;
  }
  shared = shared_of(order, trains);
  std::set<Value> kept;
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    if (graph.node(id).pass != Pass::gradient) continue;
    for (const Value& input : graph.node(id).inputs) {
      const Node& made = input.node();
      if (made.op && made.pass == Pass::forward && order.place(input) != ForwardOrder::kAnywhere) kept.insert(input);
    }
  }
  for (const Value& value : kept) activations[static_cast<std::size_t>(order.place(value)) + 1] += value.spec().bytes();
  for (const ForwardOrder::Reach& reach : order.reaches(results, false)) {
    // Before the places (first, made] it goes back, before (made, last] on.
    across[static_cast<std::size_t>(reach.first) + 1] += reach.value.spec().bytes();
    const auto behind = std::min(static_cast<std::size_t>(reach.last) + 1, places);
    across[behind] -= reach.value.spec().bytes();  // wraps; the sums do not
  }
  for (std::size_t p = 1; p <= places; ++p) {
    time[p] += time[p - 1];
    variables[p] += variables[p - 1] + (trains ? 0 : variables[p] * (kCopiesInTraining - 1));
    activations[p] += activations[p - 1];
    across[p] += across[p - 1];
  }
}

/// A place to cut: before a node, with fewest bytes in between two that read parameters.
struct Candidate {
  std::int32_t reader = 0;  // the first node with parameters behind the cut
  std::int32_t place = 0;
};

/// Parameters of the network that no node before reads.
std::vector<std::string> fresh_parameters(const ForwardOrder& order, std::int32_t reader) {
  std::vector<std::string> names;
  for (const Value& input : order.graph().node(reader).inputs) {
    if (order.is_parameter(input) && order.place(input) == reader) names.push_back(input.name());
  }
  return names;
}

std::int32_t best_place(const Sums& sums, std::int32_t before, std::int32_t reader) {
  std::int32_t best = reader;
  for (std::int32_t p = reader; p > before; --p) {
    if (sums.across[static_cast<std::size_t>(p)] < sums.across[static_cast<std::size_t>(best)]) best = p;
  }
  return best;
}

std::vector<Candidate> candidates_of(const ForwardOrder& order, const Sums& sums) {
  std::vector<Candidate> all;
  const std::vector<std::int32_t> readers = order.readers_of_parameters();
  for (std::size_t r = 1; r < readers.size(); ++r) {
    const std::string& module = order.graph().node(readers[r]).module;
    const bool is_one_layer = !module.empty() && module == order.graph().node(readers[r - 1]).module;
    if (is_one_layer || fresh_parameters(order, readers[r]).empty()) continue;
    all.push_back({readers[r], best_place(sums, readers[r - 1], readers[r])});
  }
  return all;
}

/// The least of the greatest cost of a stage.
class Search {
 public:
  Search(const Sums& sums, std::vector<std::int32_t> borders, std::span<const std::size_t> memory)
      : sums_(sums), borders_(std::move(borders)), memory_(memory) {}

  /// The borders between the stages, among those given: the first is 0, the last the end.
  [[nodiscard]] std::vector<std::size_t> run() const {
    const std::size_t n = borders_.size(), stages = memory_.size();
    std::vector<std::vector<double>> best(stages + 1, std::vector<double>(n, std::numeric_limits<double>::infinity()));
    std::vector<std::vector<std::size_t>> from(stages + 1, std::vector<std::size_t>(n, 0));
    best[0][0] = 0;
    for (std::size_t s = 0; s < stages; ++s) {
      for (std::size_t to = s + 1; to < n; ++to) {
        for (std::size_t begin = s; begin < to; ++begin) {
          if (best[s][begin] == std::numeric_limits<double>::infinity()) continue;
          const double cost = std::max(best[s][begin], cost_of(s, begin, to));
          if (cost >= best[s + 1][to]) continue;
          best[s + 1][to] = cost;
          from[s + 1][to] = begin;
        }
      }
    }
    std::vector<std::size_t> chosen;
    std::size_t at = n - 1;
    for (std::size_t s = stages; s > 1; --s) chosen.insert(chosen.begin(), at = from[s][at]);
    return chosen;
  }

 private:
  [[nodiscard]] double cost_of(std::size_t stage, std::size_t begin, std::size_t end) const {
    const auto from = static_cast<std::size_t>(borders_[begin]), to = static_cast<std::size_t>(borders_[end]);
    double cost = sums_.time[to] - sums_.time[from];
    if (begin > 0) cost += kBytesAByteSent * static_cast<double>(sums_.across[from]);
    if (end + 1 < borders_.size()) cost += kBytesAByteSent * static_cast<double>(sums_.across[to]);
    if (memory_[stage] == 0) return cost;
    // Stage i has so many batches between their forward and their backward pass.
    const std::size_t in_flight = memory_.size() - stage;
    std::size_t bytes =
        sums_.variables[to] - sums_.variables[from] + in_flight * (sums_.activations[to] - sums_.activations[from]);
    for (const SharedParameter& parameter : sums_.shared) {
      bytes += parameter.bytes_beside(borders_[begin], borders_[end]);
    }
    const double part = static_cast<double>(bytes) / static_cast<double>(memory_[stage]);
    constexpr double kTight = 0.8, kTooMuch = 1e6;  // workspaces and values in between need memory, too
    return part <= kTight ? cost : cost * (1 + kTooMuch * (part - kTight));
  }

  const Sums& sums_;
  std::vector<std::int32_t> borders_;
  std::span<const std::size_t> memory_;
};

}  // namespace

StagePlan::StagePlan(const Graph& graph, std::span<const Value> results, std::span<const std::size_t> memory)
    : stages_(static_cast<int>(memory.size())) {
  const ForwardOrder order(graph);
  const Sums sums(order, results);
  const std::vector<Candidate> candidates = candidates_of(order, sums);
  CONCORD_CHECK(candidates.size() + 1 >= memory.size(), ArgumentError,
                "a pipeline of {} stages needs a network with at least {} layers that have parameters; this one has {}",
                stages_, stages_, candidates.size() + 1);
  std::vector<std::int32_t> borders{0};
  for (const Candidate& candidate : candidates) borders.push_back(candidate.place);
  borders.push_back(graph.size());
  std::vector<std::int32_t> begins;
  for (const std::size_t border : Search(sums, borders, memory).run()) begins.push_back(candidates[border - 1].reader);
  first_parameters_.resize(memory.size());
  for (const std::int32_t reader : order.readers_of_parameters()) {
    const auto stage = static_cast<int>(std::ranges::upper_bound(begins, reader) - begins.begin());
    for (const std::string& name : fresh_parameters(order, reader)) {
      stage_of_.emplace(name, stage);
      std::string& first = first_parameters_[static_cast<std::size_t>(stage)];
      if (first.empty()) first = name;
    }
  }
}

std::vector<std::int32_t> StagePlan::begins_in(const ForwardOrder& order, std::span<const Value> results) const {
  const Sums sums(order, results);
  const std::vector<std::int32_t> readers = order.readers_of_parameters();
  std::vector<std::int32_t> begins;
  std::int32_t before = 0;
  for (const std::int32_t reader : readers) {
    int stage = 0;
    for (const std::string& name : fresh_parameters(order, reader)) {
      const auto known = stage_of_.find(name);
      if (known != stage_of_.end()) stage = std::max(stage, known->second);
    }
    while (std::cmp_less(begins.size(), stage)) begins.push_back(best_place(sums, before, reader));
    before = reader;
  }
  CONCORD_CHECK(std::cmp_equal(begins.size() + 1, stages_), ArgumentError,
                "the network has lost parameters since it was cut into {} stages", stages_);
  return begins;
}

}  // namespace concord::train
