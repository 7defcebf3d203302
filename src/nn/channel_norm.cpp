// Scale and shift by channel, and running statistics.
#include "concord/nn/channel_norm.hpp"

#include <utility>

#include "concord/core/check.hpp"
#include "concord/nn/init.hpp"
#include "concord/nn/substitution.hpp"
#include "concord/ops/all_reduce.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/stop_gradient.hpp"

namespace concord::nn {
namespace {

/// (C) as (C, 1, …), to be broadcast over x (N, C, …).
Value by_channel(Value values, Value x) {
  std::vector<std::int64_t> dims(x.shape().rank() - 1, 1);
  dims[0] = values.shape()[0];
  return reshape(values, Shape(std::move(dims)));
}

/// The number of the batch where a graph's statistics are averaged; else empty.
struct AveragedBatch {
  Value number;
};

/// This rank, and how many there are; 0 where ranks do not share statistics.
struct RankPlace {
  int rank = 0, ranks = 0;
};

}  // namespace

SynchronisedStatistics::SynchronisedStatistics(Graph& graph, int rank, int ranks) : graph_(graph) {
  CONCORD_CHECK(rank >= 0 && rank < ranks, ArgumentError, "SynchronisedStatistics: there is no rank {} of {}", rank,
                ranks);
  const RankPlace outer = std::exchange(graph.attached<RankPlace>(), {rank, ranks});
  outer_rank_ = outer.rank;
  outer_ranks_ = outer.ranks;
}
SynchronisedStatistics::~SynchronisedStatistics() { graph_.attached<RankPlace>() = {outer_rank_, outer_ranks_}; }

AveragedStatistics::AveragedStatistics(Value batch)
    : graph_(batch.graph()), outer_(std::exchange(graph_.attached<AveragedBatch>().number, batch)) {}
AveragedStatistics::~AveragedStatistics() { graph_.attached<AveragedBatch>().number = outer_; }

ChannelNorm::ChannelNorm(std::string name, std::int64_t channels, float epsilon)
    : name_(std::move(name)), channels_(channels), epsilon_(epsilon) {
  CONCORD_CHECK(channels > 0, ArgumentError, "{}: channels must be positive, got {}", name_, channels);
}

void ChannelNorm::add_affine(bool trainable) {
  weight_ = make_parameter(Shape{channels_}, init::constant(1), trainable);
  bias_ = make_parameter(Shape{channels_}, init::constant(0), trainable);
}

void ChannelNorm::add_running_statistics(std::optional<float> momentum) {
  momentum_ = momentum;
  running_mean_ = make_parameter(Shape{channels_}, init::constant(0), false);
  running_var_ = make_parameter(Shape{channels_}, init::constant(1), false);
  if (!momentum) batches_ = make_parameter(Shape{}, init::constant(0), false);
}

void ChannelNorm::expect(Value x, const NormRanks& ranks) const {
  const std::size_t rank = x.shape().rank();
  CONCORD_CHECK(rank >= ranks.least && rank <= ranks.most && x.shape()[1] == channels_, ShapeError,
                "{}: expected [batch, {}, …] of {} to {} dimensions, got {}", x.graph().scoped(name_, '/'), channels_,
                ranks.least, ranks.most, x.shape().str());
}

Value ChannelNorm::affine(Value x) const {
  if (!weight_) return x;
  Graph& graph = x.graph();
  return pointwise(
      "affine", {x, by_channel(parameter(graph, weight_, "weight"), x), by_channel(parameter(graph, bias_, "bias"), x)},
      scalar::input(0) * scalar::input(1) + scalar::input(2));
}

Value ChannelNorm::by_running_statistics(Value x) const {
  Graph& graph = x.graph();
  return by_statistics(x, parameter(graph, running_mean_, "running_mean"),
                       parameter(graph, running_var_, "running_var"));
}

Value ChannelNorm::by_statistics(Value x, Value mean, Value variance) const {
  Graph& graph = x.graph();
  std::vector<Value> operands{mean, variance};
  Scalar factor = scalar::rsqrt(scalar::input(1) + epsilon_);
  if (weight_) {
    operands.push_back(parameter(graph, weight_, "weight"));
    factor = scalar::input(2) * factor;
  }
  // The mean is subtracted first: x·factor and mean·factor would be rounded to their own size, which may be far above
  // that of their difference.
  const auto factors = pointwise("norm_factors", operands, {-scalar::input(0), factor}, {DType::f32, DType::f32});
  const Value normalised = (x + by_channel(factors[0], x)) * by_channel(factors[1], x);
  return weight_ ? normalised + by_channel(parameter(graph, bias_, "bias"), x) : normalised;
}

std::optional<ChannelNorm::RankStatistics> ChannelNorm::statistics_of_ranks(Value x) const {
  Graph& graph = x.graph();
  const RankPlace place = graph.attached<RankPlace>();
  if (place.ranks == 0) return {};
  std::vector<std::int64_t> axes{0};
  for (std::size_t axis = 2; axis < x.shape().rank(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  const auto values = static_cast<float>(x.shape().elements() / channels_);
  const Value mean = concord::mean(x, axes);
  const Value deviations = concord::mean(square(x - by_channel(mean, x)), axes);
  // One message for all three. The sum of all squares would lose the variance of values far from 0.
  const Value own = concat({full(graph, Shape{1}, values), mean, deviations}, 0);
  const Value all = all_gather(own, place.rank, place.ranks);  // (ranks, 1 + 2 C)
  const Value counts = slice(all, 1, 0, 1);
  const Value means = slice(all, 1, 1, 1 + channels_), variances = slice(all, 1, 1 + channels_, 1 + 2 * channels_);
  const Value total = sum(counts);
  const Value common = sum(counts * means, {0}) / total;
  const Value variance = sum(counts * (variances + square(means - common)), {0}) / total;
  const Scalar n = scalar::input(0);
  return RankStatistics{common, variance,
                        pointwise("unbiased", {stop_gradient(total)}, n / scalar::max(n - 1.0F, 1.0F))};
}

void ChannelNorm::move_running_statistics(Graph& graph, const Statistics& batch) const {
  const Value mean = parameter(graph, running_mean_, "running_mean");
  const Value variance = parameter(graph, running_var_, "running_var");
  std::vector<Value> operands{latest(mean), latest(variance), batch.mean, batch.variance};
  Scalar newest = momentum_.value_or(0);
  const Value averaged_batch = graph.attached<AveragedBatch>().number;
  const bool averaged(averaged_batch);
  if (averaged || !momentum_) {
    Value next = averaged_batch;
    if (!momentum_) {
      const Value batches = parameter(graph, batches_, "num_batches_tracked");
      next = averaged ? reshape(averaged_batch, Shape{}) : latest(batches) + 1.0F;
      graph.assign(batches, next);
    }
    operands.push_back(next);
    newest = 1.0F / scalar::input(4);
  }
  const auto moved = [&](int running, int now) {
    const Scalar mixed = (1.0F - newest) * scalar::input(running) + newest * scalar::input(now);
    // Statistics of weights that had gone astray must not stay in the mean: 0·NaN is NaN.
    return averaged ? scalar::select(scalar::equal(newest, 1.0F), scalar::input(now), mixed) : mixed;
  };
  const auto next = pointwise("running_statistics", operands, {moved(0, 2), moved(1, 3)}, {DType::f32, DType::f32});
  graph.assign(mean, next[0]);
  graph.assign(variance, next[1]);
}

}  // namespace concord::nn
