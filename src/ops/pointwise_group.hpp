// PointwiseGroup: the same formulas over several sets of tensors, each of its own size — the updates of many parameters
// in one go. Made by compile/group, never by users.
#pragma once

#include <memory>

#include "concord/ops/pointwise.hpp"

namespace concord::ops {

/// Inputs: those that all members share, in the formulas' order, then member by member its own, in that order. Outputs:
/// member by member, one a formula, of the shape of the member's whole inputs.
class PointwiseGroup final : public Operator {
 public:
  /// How an input of the formulas reaches the members: one number for all, one number each, a tensor of its size each.
  enum class Reach : std::uint8_t { shared, single, whole };

  /// `reach[i]` is that of input i; at least one is whole. The expression uses no coordinates.
  PointwiseGroup(Expression expression, std::vector<DType> types, std::string_view label, std::vector<Reach> reach,
                 std::size_t members);
  [[nodiscard]] std::string_view name() const override { return label_; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;
  [[nodiscard]] std::string attributes() const override;
  /// Within a member, as for Pointwise.
  [[nodiscard]] bool in_place(std::size_t input, std::size_t output) const override;

  /// What each member computes.
  [[nodiscard]] const Pointwise& member() const { return member_; }
  [[nodiscard]] std::span<const Reach> reach() const { return reach_; }
  [[nodiscard]] std::size_t members() const { return members_; }
  [[nodiscard]] std::size_t results() const { return member_.types().size(); }
  /// Where among the operator's inputs a member finds input `i` of the formulas.
  [[nodiscard]] std::size_t place_of(std::size_t member, std::size_t i) const;

 private:
  Pointwise member_;
  std::vector<Reach> reach_;
  std::size_t members_, shared_ = 0;
  std::string label_;  // "sgd of 20"
};

}  // namespace concord::ops
