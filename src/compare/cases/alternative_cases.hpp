// Small graphs that the ways to compute of a device are checked with, by family of operators. Used by
// check_alternative.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/graph/graph.hpp"

namespace concord {

struct AlternativeCase {
  std::string_view family;  // of alternatives: "product"
  std::vector<Shape> inputs;
  std::vector<Value> (*build)(std::span<const Value> inputs);

  /// Whether an alternative of that family may compute something in it; one of the family "all" in any, and products in
  /// convolutions.
  [[nodiscard]] bool concerns(std::string_view family_of_alternative) const;
};

[[nodiscard]] const std::vector<AlternativeCase>& alternative_cases();

/// The graph of a case, with numbers for its inputs.
struct AlternativeGraph {
  explicit AlternativeGraph(const AlternativeCase& one);
  Graph graph;
  std::vector<Value> outputs;
  std::map<std::string, Tensor> inputs;
};

}  // namespace concord
