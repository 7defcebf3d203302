// StagePlan: where a network is cut into the stages of a pipeline. Internal to the room.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "concord/graph/stages.hpp"

namespace concord::train {

/// Which stage keeps which parameters. A plan is made from one graph of a network, and holds for all of them.
class StagePlan {
 public:
  /// Chooses the cuts: stages that fit into `memory`, bytes of the device of each stage (0: unknown), then stages that
  /// take about as long, by the operators' cost and the bytes that go from stage to stage. Every rank that calls it
  /// with the same arguments gets the same plan. Throws ArgumentError if the network has too few places to cut.
  StagePlan(const Graph& graph, std::span<const Value> results, std::span<const std::size_t> memory);

  /// The first node of stages 1, 2, … in a graph of the network.
  [[nodiscard]] std::vector<std::int32_t> begins_in(const ForwardOrder& order, std::span<const Value> results) const;
  [[nodiscard]] int size() const { return stages_; }
  /// The first parameter of each stage, "conv1.weight".
  [[nodiscard]] std::vector<std::string> first_parameters() const { return first_parameters_; }

 private:
  int stages_;
  std::map<std::string, int> stage_of_;  // of each parameter
  std::vector<std::string> first_parameters_;
};

}  // namespace concord::train
