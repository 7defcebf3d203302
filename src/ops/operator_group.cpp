// OperatorGroup: the rules of its members, one behind the other.
#include "concord/ops/operator_group.hpp"

#include <fmt/format.h>

#include "concord/ops/rules.hpp"

namespace concord::ops {

OperatorGroup::OperatorGroup(std::vector<Member> members, std::string_view label)
    : members_(std::move(members)), label_(fmt::format("{} of {}", label, members_.size())) {}

std::vector<TensorSpec> OperatorGroup::infer(std::span<const TensorSpec> inputs) const {
  std::size_t all = 0;
  for (const Member& member : members_) all += member.inputs;
  expect_inputs(name(), inputs, all);
  std::vector<TensorSpec> outputs;
  std::size_t first = 0;
  for (const Member& member : members_) {
    outputs.push_back(member.op->infer(inputs.subspan(first, member.inputs)).front());
    first += member.inputs;
  }
  return outputs;
}

Cost OperatorGroup::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost total;
  std::size_t first = 0;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const Cost cost = members_[m].op->cost(inputs.subspan(first, members_[m].inputs), outputs.subspan(m, 1));
    first += members_[m].inputs;
    total.flops += cost.flops;
    total.bytes += cost.bytes;
  }
  return total;
}

}  // namespace concord::ops
