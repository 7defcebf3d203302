// The stack of substitutions.
#include "concord/nn/substitution.hpp"

#include <utility>
#include <vector>

namespace concord::nn {
namespace {

thread_local std::vector<std::pair<VariablePtr, Value>> substitutions;

}  // namespace

Substitution::Substitution(VariablePtr variable, Value value) {
  substitutions.emplace_back(std::move(variable), value);
}

Substitution::~Substitution() { substitutions.pop_back(); }

Value substituted(const Graph& graph, const VariablePtr& variable) {
  for (auto it = substitutions.rbegin(); it != substitutions.rend(); ++it) {
    if (it->first == variable && &it->second.graph() == &graph) return it->second;
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
