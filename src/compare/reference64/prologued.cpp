// The prologue in double precision, its result as a tensor.
#include "concord/compare/reference64/prologued.hpp"

#include <algorithm>

#include "concord/compare/reference64/families.hpp"
#include "concord/ops/prologued.hpp"

namespace concord::float64 {

std::optional<ReplayedNode> without_prologue(const ReplayedNode& node) {
  const auto* op = dynamic_cast<const ops::Prologued*>(node.op);
  if (op == nullptr) return std::nullopt;
  const Shape& shape = node.inputs[0].shape();
  std::vector<Numbers> operands{{doubles(node.inputs[0]), shape}};
  for (const Tensor& extra : std::span(node.inputs).subspan(op->base_inputs())) {
    operands.push_back({doubles(extra), extra.shape()});
  }
  const Values values = std::move(values_of(op->prologue(), operands, shape).front());
  ReplayedNode base = node;
  base.op = op->base().get();
  base.inputs.resize(op->base_inputs());
  base.inputs[0] = Tensor(DType::f32, shape);
  std::ranges::transform(values, base.inputs[0].values<float>().begin(),
                         [](double value) { return static_cast<float>(value); });
  return base;
}

Results prologued(const ReplayedNode& node) {
  const std::optional<ReplayedNode> base = without_prologue(node);
  return base ? evaluate(*base) : Results{};
}

}  // namespace concord::float64
