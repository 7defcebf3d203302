// Random tensors and dropout: shape rules and the choice of purpose numbers.
#include "concord/ops/random.hpp"

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "concord/core/check.hpp"
#include "concord/ops/attention.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/rules.hpp"

namespace concord {
namespace ops {

std::string_view Random::name() const {
  switch (distribution_) {
    case Distribution::uniform: return "random_uniform";
    case Distribution::normal: return "random_normal";
    case Distribution::bernoulli: return "random_bernoulli";
    case Distribution::attention: return "random_attention";
  }
  throw Error("unknown distribution");
}

std::vector<TensorSpec> Random::infer(std::span<const TensorSpec> inputs) const {
  expect_inputs(name(), inputs, 1);
  expect_spec(name(), "state", inputs[0], DType::i32, Shape{4});
  CONCORD_CHECK(distribution_ != Distribution::attention || shape_.rank() == 4, ShapeError,
                "{}: expected (batch, heads, queries, keys), got {}", name(), shape_.str());
  return {{DType::f32, shape_}};
}

std::string Random::attributes() const {
  return fmt::format("shape {} a {} b {} purpose {}", shape_.str(), a_, b_, purpose_);
}

namespace {

/// The purposes of a graph's random operators. The nodes of a graph stay, so each is looked at once, and each name is
/// tried from the number that was free last.
struct Purposes {
  std::int32_t seen = 0;  // nodes
  std::unordered_set<std::uint32_t> taken;
  std::unordered_map<std::string, int> numbers;  // by name

  void look_at(const Graph& graph) {
    for (; seen < graph.size(); ++seen) {
      const Operator* op = graph.node(seen).op.get();
      if (const auto* random = dynamic_cast<const Random*>(op)) taken.insert(random->purpose());
      const auto* attention = dynamic_cast<const Attention*>(op);
      if (attention != nullptr && attention->form().dropout > 0) taken.insert(attention->form().purpose);
    }
  }
};

}  // namespace

std::uint32_t new_purpose(const Graph& graph, std::string_view label) {
  // No graph is made const, and what is kept with it is no part of it.
  auto& purposes = const_cast<Graph&>(graph).attached<Purposes>();  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  purposes.look_at(graph);
  const std::string base = graph.scoped(label, '/');
  int& number = purposes.numbers[base];
  const auto purpose = [&] { return Graph::purpose(number == 0 ? base : fmt::format("{}_{}", base, number)); };
  while (purposes.taken.contains(purpose())) ++number;
  return purpose();
}

}  // namespace ops

namespace {

Value random(Graph& graph, ops::Distribution distribution, Shape shape, float a, float b, std::string_view label) {
  const std::uint32_t purpose = ops::new_purpose(graph, label);
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

Value random_mask(Graph& graph, Shape shape, float probability, float value, std::string_view label) {
  return random(graph, ops::Distribution::bernoulli, std::move(shape), probability, value, label);
}

Value random_categorical(Value logits) {
  CONCORD_CHECK(logits.shape().rank() >= 1 && logits.dtype() == DType::f32, ShapeError,
                "random_categorical: expected f32 logits [..., classes], got {}", logits.spec().str());
  Graph& graph = logits.graph();
  const Value uniform = random(graph, ops::Distribution::uniform, logits.shape(), 0, 1, "random_categorical");
  const Scalar noise = -scalar::log(-scalar::log(scalar::input(1)));
  return argmax(pointwise("gumbel", {logits, uniform}, scalar::input(0) + noise), -1);
}

Value dropout(Value x, float p) {
  CONCORD_CHECK(p >= 0 && p <= 1, ArgumentError, "dropout: the probability {} is outside [0, 1]", p);
  Graph& graph = x.graph();
  if (!graph.training() || p == 0) return x;
  if (p == 1) return full(graph, x.shape(), 0.0F);
  const float keep = 1.0F - p;
  // Of zeros and ones, which every number of a device stores exactly.
  const Value mask = random_mask(graph, x.shape(), keep, 1.0F, "dropout");
  // Selected: what is dropped is 0 and has a gradient of 0 even where it is not a number.
  return pointwise("dropout", {x, mask}, scalar::select(scalar::input(1), scalar::input(0) * (1.0F / keep), 0.0F));
}

Value advanced_random(Value state, const std::vector<Value>& terms, const Scalar& runs) {
  const Scalar is_step = scalar::equal(scalar::coordinate(0), 2.0F);
  const Scalar moved = scalar::input(0) + scalar::select(is_step, runs, 0.0F);
  const auto most = static_cast<float>(kMostRuns);
  const Scalar is_past = is_step * scalar::less_equal(most, moved);
  std::vector<Value> inputs{state};
  inputs.insert(inputs.end(), terms.begin(), terms.end());
  return pointwise("advance_random", inputs, scalar::select(is_past, moved - most, moved), DType::i32);
}

void advance_random(Graph& graph) {
  const Value state = graph.used_random_state();
  if (!state) return;
  graph.assign(state, advanced_random(state, {}, 1.0F));
}

}  // namespace concord
