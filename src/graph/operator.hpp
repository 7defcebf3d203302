// The contract of an operator: shape rule, gradient rule and cost; no device. Families in ops/ implement it,
// backends look at the concrete description to prepare a kernel for it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {

/// Work of one execution, for rooflines and reports.
struct Cost {
  double flops = 0;  // multiply and add count as two
  double bytes = 0;  // each input read once, each output written once
};

/// An immutable description of one operation. Owes:
/// - `infer`: the specs of the outputs for these inputs; throws ShapeError with what was expected and got;
/// - `gradient`: one Value an input (empty where `wanted[i]` is false or no gradient exists), built from other
///   operators; `diff_dst[k]` is empty when the loss does not depend on output k;
/// - `attributes`: every parameter as text, so that equal name, attributes and specs mean equal computation.
class Operator {
 public:
  virtual ~Operator() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const = 0;
  [[nodiscard]] virtual std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                                    const std::vector<bool>& wanted) const;
  [[nodiscard]] virtual Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const;
  [[nodiscard]] virtual std::string attributes() const { return {}; }
  /// Output k may be written over input i while the operator runs (same bytes, read before written).
  [[nodiscard]] virtual bool in_place(std::size_t /*input*/, std::size_t /*output*/) const { return false; }
  /// The output is the input's bytes under another shape: no kernel at all.
  [[nodiscard]] virtual bool is_alias() const { return false; }
};

}  // namespace concord
