// The contract of an operator: shape rule, gradient rule and cost. It has no device. The families in ops/ implement it;
// backends read the concrete description to prepare a kernel.
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

/// The work of one execution, for rooflines and reports.
struct Cost {
  double flops = 0;  // a multiply-add counts as two
  double bytes = 0;  // each input is read once, each output is written once
};

/// An immutable description of one operation. A derived class implements:
/// - `infer`: returns the specs of the outputs for these inputs; throws ShapeError with the expected and the given
///   specs.
/// - `gradient`: returns one Value for each input, built from other operators. A Value is empty if `wanted[i]` is false
///   or no gradient exists. `diff_dst[k]` is empty if the loss does not depend on output k.
/// - `attributes`: returns every parameter as text. Equal name, attributes and specs mean equal computation.
class Operator {
 public:
  virtual ~Operator() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const = 0;
  [[nodiscard]] virtual std::vector<Value> gradient(const Node& node, std::span<const Value> diff_dst,
                                                    const std::vector<bool>& wanted) const;
  [[nodiscard]] virtual Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const;
  [[nodiscard]] virtual std::string attributes() const { return {}; }
  /// Returns whether output k may overwrite input i while the operator runs. Both have equal size, and the kernel reads
  /// an element before it writes it.
  [[nodiscard]] virtual bool in_place(std::size_t /*input*/, std::size_t /*output*/) const { return false; }
  /// Returns whether the output is the input's memory under another shape. Such an operator needs no kernel.
  [[nodiscard]] virtual bool is_alias() const { return false; }
};

}  // namespace concord
