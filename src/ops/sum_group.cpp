// SumGroup: the rules of its members, one behind the other.
#include "concord/ops/sum_group.hpp"

#include <fmt/format.h>

#include "concord/ops/rules.hpp"

namespace concord::ops {

SumGroup::SumGroup(std::vector<std::shared_ptr<const Operator>> members)
    : members_(std::move(members)), label_(fmt::format("reduce_sum of {}", members_.size())) {}

std::vector<TensorSpec> SumGroup::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, members_.size());
  std::vector<TensorSpec> outputs;
  for (std::size_t m = 0; m < members_.size(); ++m) outputs.push_back(members_[m]->infer(inputs.subspan(m, 1)).front());
  return outputs;
}

Cost SumGroup::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost total;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const Cost cost = members_[m]->cost(inputs.subspan(m, 1), outputs.subspan(m, 1));
    total.flops += cost.flops;
    total.bytes += cost.bytes;
  }
  return total;
}

}  // namespace concord::ops
