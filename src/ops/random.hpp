// Random tensors from the counter-based stream (philox.h). uniform, bernoulli and attention have equal bits on every
// device; normal uses log, sqrt and cos, so devices agree up to rounding.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/expression.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

enum class Distribution : std::uint8_t { uniform, normal, bernoulli, attention };

/// state i32 [4] = (seed low, seed high, step, 0) → f32 with `shape`. Element i (row-major) comes from Philox(index i,
/// `purpose`, step, seed). uniform: [a, b). normal: mean a, standard deviation b, by Box and Muller from the uniforms
/// 2i and 2i+1. bernoulli: b with probability a, else 0. attention: for a shape (batch, heads, queries, keys), b for
/// the weights that dropout in attention keeps if it keeps `a` of 65536 (cl_kernels/shared/attention_dropout.h), else
/// 0.
class Random final : public Operator {
 public:
  Random(Distribution distribution, Shape shape, float a, float b, std::uint32_t purpose)
      : distribution_(distribution), shape_(std::move(shape)), a_(a), b_(b), purpose_(purpose) {}
  [[nodiscard]] std::string_view name() const override;
  [[nodiscard]] std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const override;
  [[nodiscard]] std::string attributes() const override;
  [[nodiscard]] Distribution distribution() const { return distribution_; }
  [[nodiscard]] float a() const { return a_; }
  [[nodiscard]] float b() const { return b_; }
  [[nodiscard]] std::uint32_t purpose() const { return purpose_; }

 private:
  Distribution distribution_;
  Shape shape_;
  float a_, b_;
  std::uint32_t purpose_;
};

/// Makes a stream number from the name of the scope and `label`, different for each random operator of the graph.
[[nodiscard]] std::uint32_t new_purpose(const Graph& graph, std::string_view label);

}  // namespace ops

/// Uniform in [low, high). The value `high` occurs only if low + (high − low)·u rounds to it.
Value random_uniform(Graph& graph, Shape shape, float low = 0, float high = 1);
Value random_normal(Graph& graph, Shape shape, float mean = 0, float deviation = 1);
/// `value` with this probability, else 0. `label` names the stream.
Value random_mask(Graph& graph, Shape shape, float probability, float value, std::string_view label);
/// logits (…, C) → i32 (…): draws class c with probability softmax(logits)_c, as the maximum of logits and Gumbel noise
/// (Gumbel, 1954). Devices agree unless two sums are equal up to rounding.
Value random_categorical(Value logits);
/// x·m/(1−p), where m is 0 with probability p, else 1, and is drawn again at each step. Returns x unless the graph is
/// in training.
Value dropout(Value x, float p);

/// The random state after so many runs, a formula of scalars `terms`: input 1, 2, …. Numbers of runs wrap at 2^24, up
/// to which fp32 counts.
inline constexpr std::int32_t kMostRuns = 1 << 24;
Value advanced_random(Value state, const std::vector<Value>& terms, const Scalar& runs);
/// Adds 1 to the step in the random state at the end of each run, so that the next run draws other numbers.
/// optim::minimize does this for a training step. Call it once in a graph that draws and does not train. Does nothing
/// if the graph draws no random numbers.
void advance_random(Graph& graph);

}  // namespace concord
