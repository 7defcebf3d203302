// Stages: a training step cut into stages, each for a device of its own. Internal to the library.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "concord/graph/graph.hpp"

namespace concord {

/// Where the nodes of a step stand in the order of its forward pass: a node of the forward pass at its own number, a
/// node of the backward pass at that of the node whose gradient it computes, and what is computed from one parameter at
/// the first node that reads it. A state of a parameter is where the parameter is; one that is added within a PassScope
/// of an update and a node, where that node is.
class ForwardOrder {
 public:
  /// What depends on no parameter: samples, their order, random numbers, the counters of a training. Each device that
  /// needs it computes it.
  static constexpr std::int32_t kAnywhere = -1;

  explicit ForwardOrder(const Graph& graph);

  [[nodiscard]] std::int32_t place(std::int32_t node) const { return places_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] std::int32_t place(const Value& value) const { return place(value.node_id()); }

  /// The places around which a value goes from device to device: it is made at `made`, and read as far forward as
  /// `last`, and by the backward pass as far back as `first`.
  struct Reach {
    Value value;
    std::int32_t made = 0, first = 0, last = 0;
  };
  /// Of all values that are computed at a place. `results` are read at the end of the forward pass. Without updates,
  /// what Pass::update reads does not count, as on one device it reads all gradients at once. Nor do the sums of the
  /// gradients that several nodes add to one variable: each stage gathers its own.
  [[nodiscard]] std::vector<Reach> reaches(std::span<const Value> results, bool with_updates = true) const;
  /// The nodes of the forward pass that read a parameter, in order.
  [[nodiscard]] std::vector<std::int32_t> readers_of_parameters() const;
  /// Whether a value is a variable of the network, such as a weight; not a state of one.
  [[nodiscard]] bool is_parameter(const Value& value) const;
  [[nodiscard]] const Graph& graph() const { return graph_; }

 private:
  [[nodiscard]] std::int32_t place_of_node(std::int32_t id) const;
  void place_variables();

  const Graph& graph_;
  std::vector<std::int32_t> places_;
};

class Stages {
 public:
  /// Computed on each stage that needs it.
  static constexpr int kAny = -1;

  /// Stage 0 begins at node 0, and stage i + 1 at begins[i]; these ascend. `results` are those of the last stage.
  /// Throws NotSupported for a step that cannot be cut there.
  Stages(const ForwardOrder& order, std::vector<std::int32_t> begins, std::span<const Value> results);

  [[nodiscard]] int size() const { return static_cast<int>(begins_.size()) + 1; }
  /// Where a value is computed, or a variable has its home; or kAny.
  [[nodiscard]] int of(const Value& value) const { return stage_at(order_.place(value)); }
  /// What stage `stage` sends to the next one in the forward pass, by node.
  [[nodiscard]] const std::vector<Value>& forward(int stage) const { return forward_[static_cast<std::size_t>(stage)]; }
  /// What the stage behind `stage` sends back to it in the backward pass.
  [[nodiscard]] const std::vector<Value>& backward(int stage) const {
    return backward_[static_cast<std::size_t>(stage)];
  }
  /// The assignments of this stage: of its variables, and of those that every stage keeps.
  [[nodiscard]] std::vector<Assignment> assignments(int stage, bool early) const;
  /// Parameters that stages read which are not their homes, by name: those stages.
  [[nodiscard]] const std::map<std::string, std::set<int>>& guests() const { return guests_; }

 private:
  [[nodiscard]] int stage_at(std::int32_t place) const;
  void find_guests();

  const ForwardOrder& order_;
  std::vector<std::int32_t> begins_;
  std::vector<std::vector<Value>> forward_, backward_;
  std::map<std::string, std::set<int>> guests_;
};

}  // namespace concord
