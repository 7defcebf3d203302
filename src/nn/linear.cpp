// Linear: a matrix product with the transposed weights, and the bias.
#include "concord/nn/linear.hpp"

#include "concord/core/check.hpp"
#include "concord/nn/init.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::nn {

Linear::Linear(std::int64_t in, std::int64_t out, const LinearOptions& options) : in_(in) {
  CONCORD_CHECK(in > 0 && out > 0, ArgumentError, "Linear: widths must be positive, got {} and {}", in, out);
  const Shape shape{out, in};
  weight_ = make_parameter(shape, init::default_weights(shape));
  if (options.bias) bias_ = make_parameter(Shape{out}, init::default_bias(shape));
}

Value Linear::forward(Value x) {
  Graph& graph = x.graph();
  CONCORD_CHECK(x.shape().rank() >= 2 && x.shape()[-1] == in_, ShapeError, "{}: expected [batch, …, {}], got {}",
                graph.scoped("linear", '/'), in_, x.shape().str());
  const Value product = matmul(x, parameter(graph, weight_, "weight"), false, true);
  return bias_ ? product + parameter(graph, bias_, "bias") : product;
}

void Linear::tie_weight(const VariablePtr& weight) {
  CONCORD_CHECK(weight && weight->spec == weight_->spec, ShapeError, "Linear: expected a weight {} to tie, got {}",
                weight_->spec.str(), weight ? weight->spec.str() : "none");
  weight_ = weight;
}

}  // namespace concord::nn
