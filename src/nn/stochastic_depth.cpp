// StochasticDepth: dropout of a factor a sample.
#include "concord/nn/stochastic_depth.hpp"

#include "concord/core/check.hpp"
#include "concord/nn/model_parallel.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/random.hpp"

namespace concord::nn {

StochasticDepth::StochasticDepth(float p, Mode mode) : p_(p), mode_(mode) {
  CONCORD_CHECK(p >= 0 && p <= 1, ArgumentError, "StochasticDepth: the probability {} is outside [0, 1]", p);
}

Value StochasticDepth::forward(Value x) {
  Graph& graph = x.graph();
  CONCORD_CHECK(x.shape().rank() >= 1, ShapeError, "{}: expected [batch, …], got {}",
                graph.scoped("StochasticDepth", '/'), x.shape().str());
  if (!graph.training() || p_ == 0) return x;
  std::vector<std::int64_t> dims(x.shape().rank(), 1);
  if (mode_ == Mode::row) dims[0] = x.shape()[0];
  const OwnRandomNumbers own(x);
  const Value factor = dropout(full(graph, Shape(std::move(dims)), 1), p_);
  return pointwise("stochastic_depth", {x, factor},
                   scalar::select(scalar::input(1), scalar::input(0) * scalar::input(1), 0.0F));
}

}  // namespace concord::nn
