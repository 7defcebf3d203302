// Operators with an epilogue: the operator's first result, not rounded, through the expression.
#include "concord/ops/fused.hpp"

#include "concord/compare/reference64/families.hpp"

namespace concord::float64 {

Results fused(const ReplayedNode& node) {
  const auto* op = dynamic_cast<const ops::Fused*>(node.op);
  if (op == nullptr) return {};
  ReplayedNode base = node;
  base.op = op->base().get();
  base.inputs.resize(op->base_inputs());
  Results results = evaluate(base);
  if (!results) return {};
  const Shape& output = node.results[0].shape();
  std::vector<Numbers> operands{{std::move(results->front()), output}};
  for (const Tensor& extra : std::span(node.inputs).subspan(op->base_inputs())) {
    operands.push_back({doubles(extra), extra.shape()});
  }
  results->front() = std::move(values_of(op->epilogue(), operands, output).front());
  return results;
}

}  // namespace concord::float64
