// Replaces a variable during tracing by a value: one computed from other parameters, or the value that is assigned to
// it. Layers with running state, weight_norm and spectral_norm use it.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// During its lifetime, Module::parameter returns `value` for `variable` in the graph of `value`, which must outlive
/// it.
class Substitution {
 public:
  Substitution(VariablePtr variable, Value value);
  Substitution(const Substitution&) = delete;
  Substitution& operator=(const Substitution&) = delete;
  ~Substitution();

 private:
  Graph& graph_;
};
/// Returns the value that replaces the variable in this graph, or an empty value.
[[nodiscard]] Value substituted(Graph& graph, const VariablePtr& variable);

/// Returns the value of `variable` after the assignments made so far. So a layer that is called twice updates its state
/// twice.
[[nodiscard]] Value latest(Value variable);

}  // namespace nn
}  // namespace concord
