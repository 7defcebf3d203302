// PointwiseGroup: shape rule, cost, and where the operands of a member are.
#include "concord/ops/pointwise_group.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/ops/rules.hpp"

namespace concord::ops {

PointwiseGroup::PointwiseGroup(Expression expression, std::vector<DType> types, std::string_view label,
                               std::vector<Reach> reach, std::size_t members)
    : member_(std::move(expression), std::move(types), std::string(label)),
      reach_(std::move(reach)),
      members_(members),
      shared_(static_cast<std::size_t>(std::ranges::count(reach_, Reach::shared))),
      label_(fmt::format("{} of {}", label, members)) {}

std::size_t PointwiseGroup::place_of(std::size_t member, std::size_t i) const {
  const bool is_shared = reach_[i] == Reach::shared;
  const auto before =
      static_cast<std::size_t>(std::count_if(reach_.begin(), reach_.begin() + static_cast<std::ptrdiff_t>(i),
                                             [&](Reach reach) { return (reach == Reach::shared) == is_shared; }));
  return is_shared ? before : shared_ + member * (reach_.size() - shared_) + before;
}

std::vector<TensorSpec> PointwiseGroup::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, shared_ + members_ * (reach_.size() - shared_));
  std::vector<TensorSpec> outputs;
  for (std::size_t member = 0; member < members_; ++member) {
    const auto whole = static_cast<std::size_t>(std::ranges::find(reach_, Reach::whole) - reach_.begin());
    CONCORD_CHECK(whole < reach_.size(), ShapeError, "{}: no input has the size of the results", name());
    const Shape shape = inputs[place_of(member, whole)].shape;
    for (std::size_t i = 0; i < reach_.size(); ++i) {
      const Shape& own = inputs[place_of(member, i)].shape;
      CONCORD_CHECK(reach_[i] == Reach::whole ? own == shape : own.elements() == 1, ShapeError,
                    "{}: input {} of tensor {} is {}, expected {}", name(), i, member, own.str(),
                    reach_[i] == Reach::whole ? shape.str() : "one number");
    }
    for (const DType type : member_.types()) outputs.push_back({type, shape});
  }
  return outputs;
}

Cost PointwiseGroup::cost(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const {
  Cost cost = Operator::cost(inputs, outputs);
  double elements = 0;
  for (std::size_t member = 0; member < members_; ++member) {
    elements += static_cast<double>(outputs[member * results()].shape.elements());
  }
  cost.flops = operations(member_.expression()) * elements;
  return cost;
}

std::string PointwiseGroup::attributes() const {
  std::string text = fmt::format("{} members of {} reached", members_, member_.attributes());
  for (const Reach reach : reach_) text += fmt::format(" {}", static_cast<int>(reach));
  return text;
}

bool PointwiseGroup::in_place(std::size_t input, std::size_t output) const {
  const std::size_t member = output / results();
  for (std::size_t i = 0; i < reach_.size(); ++i) {
    if (reach_[i] == Reach::whole && place_of(member, i) == input) return true;
  }
  return false;
}

}  // namespace concord::ops
