// Random tensors from the counter-based stream (philox.h): equal bits on every device for uniform and bernoulli;
// normal goes through log, sqrt and cos, so devices agree to their rounding.
#pragma once

#include "concord/core/export.hpp"
#include "concord/graph/operator.hpp"

namespace CONCORD_PUBLIC concord {
namespace ops {

enum class Distribution : std::uint8_t { uniform, normal, bernoulli };

/// state i32 [4] = (seed low, seed high, step, 0) → f32 of `shape`; element i (row-major) from Philox
/// (index i, `purpose`, step, seed). uniform: [a, b); normal: mean a, deviation b, by Box and Muller from the two
/// uniforms of indices 2i and 2i+1; bernoulli: b with probability a, else 0.
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

/// A purpose made from the scope's name and `label`, different for every operator of the graph that draws.
[[nodiscard]] std::uint32_t new_purpose(const Graph& graph, std::string_view label);

}  // namespace ops

/// Of [low, high): high itself only where low + (high - low) · u rounds to it.
Value random_uniform(Graph& graph, Shape shape, float low = 0, float high = 1);
Value random_normal(Graph& graph, Shape shape, float mean = 0, float deviation = 1);
/// `value` with this probability, else 0. `label` names the stream.
Value random_mask(Graph& graph, Shape shape, float probability, float value, std::string_view label);
/// logits (…, C) → i32 (…): class c with probability softmax(logits)_c, as the largest of logits and Gumbel noise
/// (Gumbel, 1954). Devices agree but where two are as large up to rounding.
Value random_categorical(Value logits);
/// x·m/(1−p) with m zero with probability p, drawn anew each step. Identity when the graph is not in training.
Value dropout(Value x, float p);

/// Lets the next run draw other numbers: the step word of the random state goes up at the end of each run. A training
/// step has this from optim::minimize; a graph that draws and does not train calls it, once. Nothing for a graph that
/// draws none.
void advance_random(Graph& graph);

}  // namespace concord
