// Random tensors and dropout: shape rules and the choice of purpose numbers.
#include "concord/ops/random.hpp"

#include "concord/core/check.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {

std::string_view Random::name() const {
  switch (distribution_) {
    case Distribution::uniform: return "random_uniform";
    case Distribution::normal: return "random_normal";
    case Distribution::bernoulli: return "random_bernoulli";
  }
  throw Error("unknown distribution");
}

std::vector<TensorSpec> Random::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  expect_spec(name(), "state", inputs[0], DType::i32, Shape{4});
  return {{DType::f32, shape_}};
}

std::string Random::attributes() const {
  return fmt::format("shape {} a {} b {} purpose {}", shape_.str(), a_, b_, purpose_);
}

}  // namespace ops

namespace {

bool is_taken(const Graph& graph, std::uint32_t purpose) {
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    const auto* random = dynamic_cast<const ops::Random*>(graph.node(id).op.get());
    if (random != nullptr && random->purpose() == purpose) return true;
  }
  return false;
}

/// Made from the scope's name, and different for every random operator of the graph.
std::uint32_t new_purpose(const Graph& graph, std::string_view label) {
  const std::string base = graph.scoped(label, '/');
  std::uint32_t purpose = Graph::purpose(base);
  for (int i = 1; is_taken(graph, purpose); ++i) purpose = Graph::purpose(fmt::format("{}_{}", base, i));
  return purpose;
}

Value random(Graph& graph, ops::Distribution distribution, Shape shape, float a, float b, std::string_view label) {
  const std::uint32_t purpose = new_purpose(graph, label);
  return graph.add(std::make_shared<ops::Random>(distribution, std::move(shape), a, b, purpose),
                   {graph.random_state()});
}

}  // namespace

Value random_uniform(Graph& graph, Shape shape, float low, float high) {
  CONCORD_CHECK(low <= high, ArgumentError, "random_uniform: low {} is above high {}", low, high);
  return random(graph, ops::Distribution::uniform, std::move(shape), low, high, "random_uniform");
}

Value random_normal(Graph& graph, Shape shape, float mean, float deviation) {
  CONCORD_CHECK(deviation >= 0, ArgumentError, "random_normal: the deviation {} is negative", deviation);
  return random(graph, ops::Distribution::normal, std::move(shape), mean, deviation, "random_normal");
}

Value dropout(Value x, float p) {
  CONCORD_CHECK(p >= 0 && p <= 1, ArgumentError, "dropout: the probability {} is outside [0, 1]", p);
  Graph& graph = x.graph();
  if (!graph.training() || p == 0) return x;
  if (p == 1) return full(graph, x.shape(), 0.0F);
  const float keep = 1.0F - p;
  const Value mask = random(graph, ops::Distribution::bernoulli, x.shape(), keep, 1.0F / keep, "dropout");
  return pointwise("dropout", {x, mask}, scalar::input(0) * scalar::input(1));
}

}  // namespace concord
