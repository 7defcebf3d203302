// Batch normalisation: the operator with the batch's statistics, two pointwise operators with the running ones.
#include "concord/nn/batch_norm.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::nn {

BatchNorm::BatchNorm(const char* name, std::int64_t channels, const BatchNormOptions& options, NormRanks ranks)
    : ChannelNorm(name, channels, options.epsilon), options_(options), ranks_(ranks) {
  CONCORD_CHECK(options.track_running_stats || !options.frozen, ArgumentError,
                "{}: frozen needs running statistics, which are turned off", name);
  if (options.affine) add_affine(!options.frozen);
  if (options.track_running_stats) add_running_statistics(options.momentum);
}

Value BatchNorm::forward(Value x) {
  expect(x, ranks_);
  Graph& graph = x.graph();
  const bool tracks = options_.track_running_stats;
  if (tracks && (options_.frozen || !graph.training())) return by_running_statistics(x);
  if (graph.training()) {
    if (const std::optional<RankStatistics> all = statistics_of_ranks(x)) {
      if (tracks) move_running_statistics(graph, {all->mean, all->variance * all->unbiased});
      return by_statistics(x, all->mean, all->variance);
    }
  }
  const std::int64_t values = x.shape().elements() / channels();  // per channel
  CONCORD_CHECK(values > 1, ShapeError, "{}: the batch's statistics need more than one value per channel, got {}",
                graph.scoped(name(), '/'), x.shape().str());
  const Value scale = weight() ? parameter(graph, weight(), "weight") : full(graph, Shape{channels()}, 1);
  const Value shift = bias() ? parameter(graph, bias(), "bias") : full(graph, Shape{channels()}, 0);
  const BatchNormResult result = batch_norm(x, scale, shift, epsilon());
  if (tracks && graph.training()) {
    // An operand, not a number of the formula: so all layers have one formula, and their updates share a launch.
    const auto count = static_cast<double>(values);
    const Value unbiased = full(graph, Shape{}, static_cast<float>(count / (count - 1)));
    move_running_statistics(graph, {result.mean, result.variance * unbiased});
  }
  return result.dst;
}

}  // namespace concord::nn
