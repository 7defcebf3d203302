// Whether values are finite: what keeps a training step with gradients that are not from being applied.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "concord/ops/pointwise.hpp"

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

/// AllFinite and formulas of single numbers that read its result, such as the counters of a training. Inputs: the
/// tensors, then the formulas' other operands. Input 0 of the formulas is the result of AllFinite. Outputs: that
/// result, then those of the formulas. Made by compile/finite_numbers where the device supports it, never by users.
class AllFiniteWithNumbers final : public Operator {
 public:
  AllFiniteWithNumbers(std::size_t tensors, Pointwise formulas, std::string label)
      : tensors_(tensors), formulas_(std::move(formulas)), label_(std::move(label)) {}
  [[nodiscard]] std::string_view name() const override { return label_; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::string attributes() const override { return formulas_.attributes(); }
  [[nodiscard]] bool in_place(std::size_t input, std::size_t output) const override {
    return input >= tensors_ && output > 0;
  }
  [[nodiscard]] std::size_t tensors() const { return tensors_; }
  [[nodiscard]] const Pointwise& formulas() const { return formulas_; }

 private:
  std::size_t tensors_;
  Pointwise formulas_;
  std::string label_;
};

}  // namespace ops

/// 1 when all elements of all values are finite, else 0. `names` say what the values are.
Value all_finite(std::vector<Value> values, std::vector<std::string> names);

}  // namespace concord
