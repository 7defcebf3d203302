// SumGroup: several sums as one operator. Made by compile/group_sums where the device groups them, never by users.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "concord/graph/operator.hpp"

namespace concord::ops {

/// Each member is a Reduce, or one with an epilogue, of one input. Inputs and outputs: those of the members, in order.
class SumGroup final : public Operator {
 public:
  explicit SumGroup(std::vector<std::shared_ptr<const Operator>> members);
  [[nodiscard]] std::string_view name() const override { return label_; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;

 private:
  std::vector<std::shared_ptr<const Operator>> members_;
  std::string label_;
};

}  // namespace concord::ops
