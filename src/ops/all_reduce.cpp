// AllReduce: shape rule and gradient; and gathering, which is a sum with zeros.
#include "concord/ops/all_reduce.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/rank_parts.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {

std::vector<TensorSpec> AllReduce::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  expect_spec(name(), "src", inputs[0], DType::f32, inputs[0].shape);
  return {inputs[0]};
}

std::vector<Value> AllReduce::gradient(const Node&, std::span<const Value> diff_dst, const std::vector<bool>&) const {
  return {all_reduce(diff_dst[0])};
}

}  // namespace ops

Value all_reduce(Value x) { return x.graph().add(std::make_shared<ops::AllReduce>(), {x}); }

Value all_gather(Value x, int rank, int ranks) {
  CONCORD_CHECK(rank >= 0 && rank < ranks, ArgumentError, "all_gather: there is no rank {} of {}", rank, ranks);
  std::vector<std::int64_t> row{1};
  row.insert(row.end(), x.shape().dims().begin(), x.shape().dims().end());
  return all_gather_parts(reshape(x, Shape(std::move(row))), 0, rank, ranks);
}

Value all_gather_parts(Value x, std::size_t axis, std::int64_t begin, std::int64_t size) {
  std::vector<std::int64_t> before(x.shape().rank(), 0), after = before;
  before[axis] = begin;
  after[axis] = size - begin - x.shape().dims()[axis];
  return all_reduce(pad(x, std::move(before), std::move(after)));
}

std::int64_t most_all_reduced(const Graph& graph) {
  std::int64_t most = 0;
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (dynamic_cast<const ops::AllReduce*>(node.op.get()) != nullptr) {
      most = std::max(most, node.outputs[0].shape.elements());
    }
  }
  return most;
}

}  // namespace concord
