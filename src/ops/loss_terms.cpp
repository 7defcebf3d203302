// A loss is marked by the label of a pointwise operator. Sums of losses are split by the formulas that add them.
#include "concord/ops/loss_terms.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

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

/// The pairs of values that were compared so far. They are the same as long as none is found that is not.
using Compared = std::set<std::pair<Value, Value>>;

/// Whether two values are computed by equal operators of the same inputs and variables.
bool is_same(Value a, Value b, Compared& compared) {
  a = origin(a);
  b = origin(b);
  if (a == b || !compared.emplace(a, b).second) return true;
  const Node &x = a.node(), &y = b.node();
  if (!x.op || !y.op || a.output() != b.output() || a.spec() != b.spec() || x.inputs.size() != y.inputs.size() ||
      x.op->name() != y.op->name() || x.op->attributes() != y.op->attributes()) {
    return x.variable && y.variable && !x.variable->trainable && !x.variable->value.bytes().empty() &&
           x.variable->spec == y.variable->spec &&
           std::ranges::equal(x.variable->value.bytes(), y.variable->value.bytes());
  }
  return std::ranges::equal(x.inputs, y.inputs, [&](Value of_a, Value of_b) { return is_same(of_a, of_b, compared); });
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
  if (expression.inputs() == 0 || expression.results().size() != 1 || !is_arithmetic) return std::nullopt;
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

/// Adds factor·sum to the terms.
void add(std::vector<LossTerm>& terms, float factor, LossTerm::Kind kind, Value sum, Value weight = {}) {
  if (factor != 1) sum = sum * factor;
  const auto alike = std::ranges::find_if(terms, [&](const LossTerm& term) {
    Compared compared;
    return term.kind == kind && (kind != LossTerm::Kind::weighted || is_same(term.weight, weight, compared));
  });
  if (alike == terms.end()) {
    terms.push_back({kind, as_number(sum), weight ? as_number(weight) : Value{}});
  } else {
    alike->sum = alike->sum + as_number(sum);
  }
}

/// A loss as a weighted sum of values. What several formulas read is one part, whose factors are added.
class WeightedSum {
 public:
  explicit WeightedSum(Value loss) {
    visit(loss);
    parts_.at(origin(loss)).factor = 1;
    // The inputs of a value come before it in the graph, and so in the map.
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
      const auto& [value, linear, factor] = part->second;
      if (!linear) continue;
      const std::vector<Value>& inputs = part->first.node().inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        parts_.at(origin(inputs[i])).factor += factor * linear->factors[i];
      }
    }
  }

  [[nodiscard]] bool has_marks() const { return has_marks_; }
  [[nodiscard]] std::vector<LossTerm> terms() const {
    using Kind = LossTerm::Kind;
    std::vector<LossTerm> terms;
    for (const Value at : order_) {
      const auto& [value, linear, factor] = parts_.at(at);
      const std::vector<Value>& inputs = at.node().inputs;
      if (is_marked(at, kWeightedMean)) {
        add(terms, factor, Kind::weighted, inputs[0], inputs[1]);
      } else if (is_marked(at, kTotal)) {
        add(terms, factor, Kind::total, inputs[0]);
      } else if (!linear) {
        add(terms, factor, Kind::mean, value);
      } else if (linear->rest != 0) {
        add(terms, factor * linear->rest, Kind::mean, full(at.graph(), Shape{}, 1));
      }
    }
    return terms;
  }

 private:
  struct Part {
    Value value;
    std::optional<Linear> linear;  // nothing for a part that is not taken apart
    float factor = 0;
  };

  void visit(Value value) {
    const Value at = origin(value);
    const auto [part, is_new] = parts_.try_emplace(at, Part{value, {}});
    if (!is_new) return;
    const bool is_mark = is_marked(at, kWeightedMean) || is_marked(at, kTotal);
    const ops::Pointwise* op = pointwise_of(at);
    has_marks_ |= is_mark;
    if (op != nullptr && !is_mark) part->second.linear = linear_of(*op);
    if (part->second.linear) {
      for (const Value input : at.node().inputs) visit(input);
    }
    order_.push_back(at);
  }

  std::map<Value, Part> parts_;  // by the value behind reshapes
  std::vector<Value> order_;     // in which the formulas read them
  bool has_marks_ = false;
};

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
  const WeightedSum sum(loss);
  // A loss without marks adds nothing to the graph.
  if (!sum.has_marks()) return {{LossTerm::Kind::mean, as_number(loss), {}}};
  return sum.terms();
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
