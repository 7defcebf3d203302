// A loss is marked by the label of a pointwise operator. Sums of losses are split by the formulas that add them.
#include "concord/ops/loss_terms.hpp"

#include <algorithm>
#include <array>

#include "concord/core/check.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord {
namespace {

constexpr const char* kWeightedMean = "weighted_mean";
constexpr const char* kTotal = "total_loss";
constexpr const char* kKeptLabels = "kept_labels";

const ops::Pointwise* pointwise_of(Value value) { return dynamic_cast<const ops::Pointwise*>(value.node().op.get()); }

bool is_marked(Value value, const char* label) {
  const ops::Pointwise* op = pointwise_of(value);
  return op != nullptr && op->name() == label;
}

/// The value behind reshapes.
Value origin(Value value) {
  while (dynamic_cast<const ops::Reshape*>(value.node().op.get()) != nullptr) value = value.node().inputs[0];
  return value;
}

Value as_number(Value value) {
  if (value.dtype() != DType::f32) value = cast(value, DType::f32);
  return value.shape().rank() == 0 ? value : reshape(value, Shape{});
}

/// Whether two values are computed by equal operators of the same inputs and variables.
bool is_same(Value a, Value b) {
  a = origin(a);
  b = origin(b);
  if (a == b) return true;
  const Node &x = a.node(), &y = b.node();
  if (!x.op || !y.op || a.output() != b.output() || a.spec() != b.spec() || x.inputs.size() != y.inputs.size() ||
      x.op->name() != y.op->name() || x.op->attributes() != y.op->attributes()) {
    return x.variable && y.variable && !x.variable->trainable && !x.variable->value.bytes().empty() &&
           x.variable->spec == y.variable->spec &&
           std::ranges::equal(x.variable->value.bytes(), y.variable->value.bytes());
  }
  return std::ranges::equal(x.inputs, y.inputs, is_same);
}

/// A formula as multiples of its inputs and a number, where it is one.
struct Linear {
  std::vector<float> factors;
  float rest = 0;
};

std::optional<Linear> linear_of(const ops::Pointwise& op) {
  const Expression& expression = op.expression();
  using F = ScalarFunction;
  const bool is_arithmetic = std::ranges::all_of(expression.code(), [](const auto& instruction) {
    constexpr std::array kArithmetic{F::input, F::constant, F::add, F::subtract, F::multiply, F::divide, F::negate};
    return std::ranges::find(kArithmetic, instruction.function) != kArithmetic.end();
  });
  if (expression.results().size() != 1 || !is_arithmetic) return std::nullopt;
  Linear linear;
  const auto inputs = static_cast<std::size_t>(expression.inputs());
  for (std::size_t i = 0; i < inputs; ++i) {
    const Scalar slope = derivative(expression.formulas()[0], static_cast<int>(i));
    const Expression constant({slope}, expression.inputs());
    if (constant.code().size() != 1 || constant.code()[0].function != ScalarFunction::constant) return std::nullopt;
    linear.factors.push_back(constant.code()[0].value);
  }
  linear.rest = expression.evaluate(0, std::vector<float>(inputs, 0.0F));
  return linear;
}

/// Adds factor·value to the parts.
void collect(Value value, float factor, std::vector<LossTerm>& parts) {
  const Value at = origin(value);
  const auto add = [&](LossTerm::Kind kind, Value sum, Value weight) {
    if (factor != 1) sum = sum * factor;
    const auto alike = std::ranges::find_if(parts, [&](const LossTerm& part) {
      return part.kind == kind && (kind != LossTerm::Kind::weighted || is_same(part.weight, weight));
    });
    if (alike == parts.end()) {
      parts.push_back({kind, as_number(sum), weight ? as_number(weight) : Value{}});
    } else {
      alike->sum = alike->sum + as_number(sum);
    }
  };
  if (is_marked(at, kWeightedMean)) return add(LossTerm::Kind::weighted, at.node().inputs[0], at.node().inputs[1]);
  if (is_marked(at, kTotal)) return add(LossTerm::Kind::total, at.node().inputs[0], {});
  const ops::Pointwise* op = pointwise_of(at);
  const std::optional<Linear> linear = op != nullptr ? linear_of(*op) : std::nullopt;
  if (!linear || linear->factors.empty()) return add(LossTerm::Kind::mean, value, {});
  for (std::size_t i = 0; i < linear->factors.size(); ++i) {
    collect(at.node().inputs[i], factor * linear->factors[i], parts);
  }
  if (linear->rest != 0) {
    factor *= linear->rest;
    add(LossTerm::Kind::mean, full(value.graph(), Shape{}, 1), {});
  }
}

/// Whether `collect` would find a mark. A loss without marks adds nothing to the graph.
bool has_marks(Value value) {
  const Value at = origin(value);
  if (is_marked(at, kWeightedMean) || is_marked(at, kTotal)) return true;
  const ops::Pointwise* op = pointwise_of(at);
  return op != nullptr && at.shape().elements() == 1 && linear_of(*op) &&
         std::ranges::any_of(at.node().inputs, has_marks);
}

void expect_number(const char* what, Value value) {
  CONCORD_CHECK(value && value.shape().elements() == 1 && value.dtype() == DType::f32, ShapeError,
                "{}: expected one f32 number, got {}", what, value ? value.spec().str() : "nothing");
}

}  // namespace

namespace loss {

Value weighted_mean(Value sum, Value weight) {
  expect_number("weighted_mean, the sum", sum);
  expect_number("weighted_mean, the weight", weight);
  return pointwise(kWeightedMean, {as_number(sum), as_number(weight)}, scalar::input(0) / scalar::input(1));
}

Value total(Value sum) {
  expect_number("total", sum);
  return pointwise(kTotal, {as_number(sum)}, scalar::input(0));
}

Value kept_labels(Value labels, std::int32_t ignored) {
  const Scalar is_ignored = scalar::equal(scalar::input(0), static_cast<float>(ignored));
  return pointwise(kKeptLabels, {labels}, scalar::select(is_ignored, 0.0F, 1.0F));
}

}  // namespace loss

Value LossTerm::value() const {
  if (kind != Kind::weighted) return sum;
  const Scalar nothing = scalar::equal(scalar::input(0), 0.0F) * scalar::equal(scalar::input(1), 0.0F);
  return pointwise("loss_term", {sum, weight}, scalar::select(nothing, 0.0F, scalar::input(0) / scalar::input(1)));
}

std::vector<LossTerm> terms_of(Value loss) {
  std::vector<LossTerm> parts;
  if (!has_marks(loss)) return {{LossTerm::Kind::mean, as_number(loss), {}}};
  collect(loss, 1, parts);
  return parts;
}

Value find_kept_labels(Graph& graph, Value labels) {
  labels = origin(labels);
  for (std::int32_t id = 0; id < graph.size(); ++id) {
    const Value value(&graph, id, 0);
    if (graph.node(id).op && is_marked(value, kKeptLabels) && origin(graph.node(id).inputs[0]) == labels) return value;
  }
  return {};
}

std::int32_t ignored_label(Value kept) {
  for (const auto& instruction : pointwise_of(kept)->expression().code()) {
    if (instruction.function == ScalarFunction::equal) {
      for (const std::int32_t argument : instruction.arguments) {
        if (argument < 0) continue;
        const auto& leaf = pointwise_of(kept)->expression().code()[static_cast<std::size_t>(argument)];
        if (leaf.function == ScalarFunction::constant) return static_cast<std::int32_t>(leaf.value);
      }
    }
  }
  throw ArgumentError("no label is left out");
}

}  // namespace concord
