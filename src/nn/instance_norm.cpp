// Group and instance normalisation: rows of the sample's channels, then scale and shift.
#include "concord/nn/instance_norm.hpp"

#include <cmath>

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/row_norm.hpp"

namespace concord::nn {

GroupNorm::GroupNorm(std::int64_t groups, std::int64_t channels, const GroupNormOptions& options)
    : ChannelNorm("GroupNorm", channels, options.epsilon), groups_(groups) {
  CONCORD_CHECK(groups > 0 && channels % groups == 0, ArgumentError, "GroupNorm: {} groups do not divide {} channels",
                groups, channels);
  if (options.affine) add_affine();
}

Value GroupNorm::forward(Value x) {
  expect(x, {2, Shape::kMaxRank});
  const Value rows = reshape(x, {x.shape()[0], groups_, -1});
  return affine(reshape(row_norm(rows, 2, epsilon()).dst, x.shape()));
}

InstanceNorm::InstanceNorm(const char* name, std::int64_t channels, const InstanceNormOptions& options,
                           std::size_t rank)
    : ChannelNorm(name, channels, options.epsilon), options_(options), rank_(rank) {
  if (options.affine) add_affine();
  if (options.track_running_stats) add_running_statistics(options.momentum);
}

Value InstanceNorm::forward(Value x) {
  expect(x, {rank_, rank_});
  Graph& graph = x.graph();
  if (options_.track_running_stats && !graph.training()) return by_running_statistics(x);
  std::int64_t values = 1;
  for (std::size_t d = 2; d < x.shape().rank(); ++d) values *= x.shape().dims()[d];
  CONCORD_CHECK(values > 1, ShapeError, "{}: each channel of a sample needs more than one value, got {}",
                graph.scoped(name(), '/'), x.shape().str());
  const RowNormResult result = row_norm(x, 2, epsilon());
  if (options_.track_running_stats) {
    // From the deviations: 1/rstd² − ε would be rounded to the size of ε.
    std::vector<std::int64_t> dims(x.shape().rank(), 1), plane;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (d < 2)
        dims[d] = x.shape()[d];
      else
        plane.push_back(static_cast<std::int64_t>(d));
    }
    const Value length = norm(x - reshape(result.mean, Shape(dims)), plane);
    const Value unbiased = square(length * static_cast<float>(1 / std::sqrt(static_cast<double>(values - 1))));
    move_running_statistics(graph, {mean(result.mean, {0}), mean(unbiased, {0})});
  }
  return affine(result.dst);
}

}  // namespace concord::nn
