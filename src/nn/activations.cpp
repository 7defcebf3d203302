// PReLU, the activation with a parameter.
#include "concord/nn/activations.hpp"

#include "concord/core/check.hpp"
#include "concord/nn/init.hpp"
#include "concord/ops/copy.hpp"

namespace concord::nn {

PReLU::PReLU(std::int64_t parameters, float first) {
  CONCORD_CHECK(parameters > 0, ArgumentError, "PReLU: at least one parameter, got {}", parameters);
  weight_ = make_parameter(Shape{parameters}, init::constant(static_cast<double>(first)));
}

Value PReLU::forward(Value x) {
  Graph& graph = x.graph();
  const Value weight = parameter(graph, weight_, "weight");
  const std::int64_t count = weight.shape()[0];
  const std::size_t rank = x.shape().rank();
  if (count == 1) return prelu(x, weight);
  CONCORD_CHECK(rank >= 2 && x.shape()[1] == count, ShapeError, "{}: expected [batch, {}, …], got {}",
                graph.scoped("PReLU", '/'), count, x.shape().str());
  std::vector<std::int64_t> dims(rank - 1, 1);
  dims[0] = count;
  return prelu(x, reshape(weight, Shape(std::move(dims))));
}

}  // namespace concord::nn
