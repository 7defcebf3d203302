// What stands for a variable while a network is traced: a value computed from other parameters, or the one it is about
// to be assigned. Used by layers with running state and by weight_norm and spectral_norm.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {
namespace nn {

/// During its lifetime Module::parameter gives `value` for `variable` in the value's graph, on this thread.
class Substitution {
 public:
  Substitution(VariablePtr variable, Value value);
  Substitution(const Substitution&) = delete;
  Substitution& operator=(const Substitution&) = delete;
  ~Substitution();
};
/// The value that stands for the variable in this graph; empty when none does.
[[nodiscard]] Value substituted(const Graph& graph, const VariablePtr& variable);

/// What `variable` will hold after the assignments made so far: a layer called twice moves its state twice.
[[nodiscard]] Value latest(Value variable);

}  // namespace nn
}  // namespace concord
