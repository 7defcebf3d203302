// The substitutions of a graph.
#include "concord/nn/substitution.hpp"

#include <utility>
#include <vector>

namespace concord::nn {
namespace {

/// The latest last.
struct Substitutions {
  std::vector<std::pair<VariablePtr, Value>> all;
};

}  // namespace

Substitution::Substitution(VariablePtr variable, Value value) : graph_(value.graph()) {
  graph_.attached<Substitutions>().all.emplace_back(std::move(variable), value);
}

Substitution::~Substitution() { graph_.attached<Substitutions>().all.pop_back(); }

Value substituted(Graph& graph, const VariablePtr& variable) {
  const auto& all = graph.attached<Substitutions>().all;
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    if (it->first == variable) return it->second;
  }
  return {};
}

Value latest(Value variable) {
  for (const Assignment& assignment : variable.graph().assignments()) {
    if (assignment.variable == variable) return assignment.value;
  }
  return variable;
}

}  // namespace concord::nn
