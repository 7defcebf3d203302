// SumGroup: several sums as one operator. Made by compile/group_sums where the device groups them, never by users.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "concord/graph/operator.hpp"

namespace concord::ops {

/// Inputs and outputs: those of the members, in order.
class SumGroup final : public Operator {
 public:
  /// A Reduce, or one with an epilogue or a prologue.
  struct Member {
    std::shared_ptr<const Operator> op;
    std::size_t inputs;
  };
  explicit SumGroup(std::vector<Member> members);
  [[nodiscard]] std::string_view name() const override { return label_; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;

 private:
  std::vector<Member> members_;
  std::string label_;
};

}  // namespace concord::ops
