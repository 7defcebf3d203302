// Linear: a matrix product with the transposed weights, and the bias.
#include "concord/nn/linear.hpp"

#include "concord/core/check.hpp"
#include "concord/nn/init.hpp"
#include "concord/nn/model_parallel.hpp"
#include "concord/ops/all_reduce.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::nn {

Linear::Linear(std::int64_t in, std::int64_t out, const LinearOptions& options) : in_(in), out_(out) {
  CONCORD_CHECK(in > 0 && out > 0, ArgumentError, "Linear: widths must be positive, got {} and {}", in, out);
  const Shape shape{out, in};
  weight_ = make_parameter(shape, init::default_weights(shape));
  if (options.bias) bias_ = make_parameter(Shape{out}, init::default_bias(shape));
}

Value Linear::columns_of(Value x, const Shard& shard) const {
  Graph& graph = x.graph();
  CONCORD_CHECK(x.shape().rank() >= 2 && x.shape()[-1] == in_, ShapeError, "{}: expected [batch, …, {}], got {}",
                graph.scoped("linear", '/'), in_, x.shape().str());
  const Value product = matmul(x, parameter_part(graph, weight_, "weight", shard), false, true);
  return bias_ ? product + parameter_part(graph, bias_, "bias", shard) : product;
}

Value Linear::forward(Value x) {
  const Value whole = with_all_samples(x);
  const Shard shard = shard_of_columns(x.graph(), Division::hybrid, out_);
  const Value columns = columns_of(whole, shard);
  return shard.is_whole() ? columns : with_all_columns(columns, shard);
}

Value Linear::column_parallel(Value x, std::int64_t blocks) {
  const Tracing tracing(x.graph(), *this);
  const Shard shard = shard_of_columns(x.graph(), Division::tensor, out_, blocks);
  return shard.is_whole() ? forward(x) : columns_of(x, shard);
}

Value Linear::row_parallel(Value x) {
  Graph& graph = x.graph();
  const Tracing tracing(graph, *this);
  Shard shard = shard_of_columns(graph, Division::tensor, in_);
  if (shard.is_whole()) return forward(x);
  shard.axis = 1;
  CONCORD_CHECK(x.shape().rank() >= 2 && x.shape()[-1] == in_ / shard.ranks, ShapeError,
                "{}: expected this device's columns [batch, …, {}], got {}", graph.scoped("linear", '/'),
                in_ / shard.ranks, x.shape().str());
  const Value y = all_reduce(matmul(x, parameter_part(graph, weight_, "weight", shard), false, true));
  return bias_ ? y + parameter(graph, bias_, "bias") : y;
}

void Linear::tie_weight(const VariablePtr& weight) {
  CONCORD_CHECK(weight && weight->spec == weight_->spec, ShapeError, "Linear: expected a weight {} to tie, got {}",
                weight_->spec.str(), weight ? weight->spec.str() : "none");
  weight_ = weight;
}

}  // namespace concord::nn
