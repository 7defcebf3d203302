// Whether values are finite: what keeps a training step with gradients that are not from being applied.
#pragma once

#include <string>

#include "concord/graph/operator.hpp"

namespace concord {
namespace ops {

/// Any number of f32 tensors → f32 of rank 0: 1 when every element is finite, else 0. Reads each element once. The
/// names are for messages: one an input.
class AllFinite final : public Operator {
 public:
  explicit AllFinite(std::vector<std::string> names) : names_(std::move(names)) {}
  [[nodiscard]] std::string_view name() const override { return "all_finite"; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

}  // namespace ops

/// 1 when all elements of all values are finite, else 0. `names` say what the values are.
Value all_finite(std::vector<Value> values, std::vector<std::string> names);

}  // namespace concord
