// OperatorGroup: several operators as one. Made by compile where the device groups them, never by users.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "concord/graph/operator.hpp"

namespace concord::ops {

/// Inputs and outputs: those of the members, in order.
class OperatorGroup final : public Operator {
 public:
  /// An operator of one output.
  struct Member {
    std::shared_ptr<const Operator> op;
    std::size_t inputs;
  };
  /// `label` says what the members are.
  OperatorGroup(std::vector<Member> members, std::string_view label);
  [[nodiscard]] std::string_view name() const override { return label_; }
  [[nodiscard]] const std::vector<Member>& members() const { return members_; }
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] Cost cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override;

 private:
  std::vector<Member> members_;
  std::string label_;
};

}  // namespace concord::ops
