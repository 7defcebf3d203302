// From the product with the values back to queries, keys and mask: see attention.hpp.
#include "concord/onnx/operators/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "concord/onnx/operators/constant_matrix.hpp"
#include "concord/onnx/operators/views.hpp"
#include "concord/ops/attention.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::onnx {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr float kHiding = -1e4F;           // and below: a constant that hides
constexpr float kBeyondScores = -1e30F;    // and below: a score added to it vanishes
constexpr std::int64_t kWidestHead = 256;  // of ops::Attention

template <class Op>
const Op* op_behind(const Value& value) {
  return dynamic_cast<const Op*>(value.node().op.get());
}

/// The root of a pointwise formula, or null.
const Scalar* formula_behind(const Value& value) {
  const auto* op = op_behind<ops::Pointwise>(value);
  return op != nullptr && value.node().outputs.size() == 1 ? op->expression().formulas().data() : nullptr;
}

/// An argument of a formula: one of the node's operands, or a number, also one that an operand is everywhere.
struct Argument {
  Value value = {};
  std::optional<float> number = std::nullopt;
};

std::optional<float> uniform_number(const Value& value) {
  const Scalar* const formula = formula_behind(value);
  if (formula == nullptr || formula->node().function != ScalarFunction::constant) return std::nullopt;
  return formula->node().value;
}

/// The arguments of `value`, if its formula is this function of operands and numbers.
std::optional<std::vector<Argument>> arguments_of(const Value& value, ScalarFunction function) {
  const Scalar* const formula = formula_behind(value);
  if (formula == nullptr || formula->node().function != function) return std::nullopt;
  std::vector<Argument> arguments;
  for (const Scalar& one : formula->node().arguments) {
    const Scalar::Node& node = one.node();
    if (node.function == ScalarFunction::constant) {
      arguments.push_back({{}, node.value});
    } else if (node.function == ScalarFunction::input) {
      const Value& operand = value.node().inputs[static_cast<std::size_t>(node.index)];
      arguments.push_back({operand, uniform_number(operand)});
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

/// A product of numbers and of values of one element, such as a scale that the file has as a parameter.
struct Factor {
  float number = 1;
  std::vector<Value> values = {};
};

/// Takes products with single numbers and quotients by them off `value`.
void strip_factors(Value& value, Factor& factor) {
  for (;;) {
    const auto product = arguments_of(value, ScalarFunction::multiply);
    const auto quotient = arguments_of(value, ScalarFunction::divide);
    if (!product && !quotient) return;
    const std::vector<Argument>& arguments = product ? *product : *quotient;
    const auto is_single = [](const Argument& one) { return one.number || one.value.shape().elements() == 1; };
    const std::size_t single = product && is_single(arguments[0]) ? 0 : 1;
    const Argument &number = arguments[single], &rest = arguments[1 - single];
    if (!is_single(number) || rest.number || rest.value.shape() != value.shape()) return;
    if (product && !number.number) {
      factor.values.push_back(number.value);
    } else if (number.number) {
      factor.number = product ? factor.number * *number.number : factor.number / *number.number;
    } else {
      return;
    }
    value = rest.value;
  }
}

bool depends_on_trainable(const Value& value) {
  std::set<std::int32_t> seen;
  std::vector<Value> waiting{value};
  while (!waiting.empty()) {
    const Value next = waiting.back();
    waiting.pop_back();
    if (!seen.insert(next.node_id()).second) continue;
    const Node& node = next.node();
    if (node.variable && node.variable->trainable && !next.graph().is_frozen(*node.variable)) return true;
    waiting.insert(waiting.end(), node.inputs.begin(), node.inputs.end());
  }
  return false;
}

/// Which keys a constant matrix (1, …, T, S) shows. Nothing where it is no such constant.
std::optional<ops::Causal> causal_form(const Value& value, std::int64_t queries, std::int64_t keys,
                                       const auto& is_hidden, const auto& is_visible) {
  const auto matrix = ConstantMatrix::of(value, queries, keys);
  if (!matrix || !is_visible(matrix->at(0, 0))) return std::nullopt;
  for (const auto form : {ops::Causal::first, ops::Causal::last}) {
    const std::int64_t more = form == ops::Causal::last ? keys - queries : 0;
    if (more < 0) continue;
    const auto fits = [&](std::int64_t i, std::int64_t j) {
      return j <= i + more ? is_visible(matrix->at(i, j)) : is_hidden(matrix->at(i, j));
    };
    bool all = fits(0, keys - 1);
    for (std::int64_t i = 0; all && i < queries; ++i) {
      for (std::int64_t j = 0; all && j < keys; ++j) all = fits(i, j);
    }
    if (all) return form;
  }
  return std::nullopt;
}

/// The scores before softmax, taken apart.
struct ScoreParts {
  Value product = {}, mask = {};  // of ops::Matmul; with the axes of the scores
  Factor scale = {};
  ops::Causal causal = ops::Causal::none;
  bool hides_by_infinity = true;  // the causal form; a finite number is a mask where another one hides too
};

class ScoreReader {
 public:
  explicit ScoreReader(const Shape& shape) : shape_(shape) {}

  std::optional<ScoreParts> read(const Value& scores) const {
    if (scores.shape() != shape_) return std::nullopt;
    Value inner = scores;
    Factor scale;
    strip_factors(inner, scale);
    if (op_behind<ops::Matmul>(inner) != nullptr) return ScoreParts{.product = inner, .scale = std::move(scale)};
    if (inner != scores) return std::nullopt;  // a mask before the scale
    if (const auto sum = arguments_of(scores, ScalarFunction::add)) {
      for (std::size_t k = 0; k < 2; ++k) {
        const Argument &masked = (*sum)[k], &mask = (*sum)[1 - k];
        if (!masked.value || masked.number) continue;
        auto parts = read(masked.value);
        if (parts && add(*parts, mask)) return parts;
      }
    }
    if (const auto chosen = arguments_of(scores, ScalarFunction::select)) return read_chosen(*chosen);
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::int64_t queries() const { return shape_[-2]; }
  [[nodiscard]] std::int64_t keys() const { return shape_[-1]; }

  /// Puts the mask to the scores, with all their axes.
  bool set_mask(ScoreParts& parts, const Value& mask) const {
    const std::size_t rank = mask.shape().rank();
    if (parts.mask || !parts.hides_by_infinity || rank < 1 || rank > shape_.rank() || mask.shape()[-1] != keys())
      return false;
    if (mask.dtype() != DType::f32 || depends_on_trainable(mask)) return false;
    Dims dims(shape_.rank() - rank, 1);
    dims.insert(dims.end(), mask.shape().dims().begin(), mask.shape().dims().end());
    parts.mask = dims == dims_of(mask) ? mask : reshape(mask, Shape(dims));
    return true;
  }
  bool set_causal(ScoreParts& parts, std::optional<ops::Causal> form, bool by_infinity) const {
    if (!form || parts.causal != ops::Causal::none || (parts.mask && !by_infinity)) return false;
    parts.causal = *form;
    parts.hides_by_infinity = by_infinity;
    return true;
  }
  bool add(ScoreParts& parts, const Argument& mask) const {
    if (mask.number) return *mask.number == 0;
    const auto hides = [](float x) { return x <= kHiding; };
    const auto hides_by_infinity = [](float x) { return x == kMinusInfinity; };
    const auto shows = [](float x) { return x == 0; };
    return set_causal(parts, causal_form(mask.value, queries(), keys(), hides_by_infinity, shows), true) ||
           set_causal(parts, causal_form(mask.value, queries(), keys(), hides, shows), false) ||
           set_mask(parts, mask.value);
  }
  /// Where(condition, scores, number) and Where(condition, number, scores).
  [[nodiscard]] std::optional<ScoreParts> read_chosen(const std::vector<Argument>& chosen) const {
    const Argument& condition = chosen[0];
    const std::size_t hidden = chosen[1].number ? 1 : 2;
    const Argument& inner = chosen[3 - hidden];
    if (!condition.value || !chosen[hidden].number || inner.number || !inner.value) return std::nullopt;
    const float number = *chosen[hidden].number;
    auto parts = read(inner.value);
    if (!parts || !(number <= kHiding)) return std::nullopt;
    const auto is_true = [](float x) { return x != 0; };
    const auto is_false = [](float x) { return x == 0; };
    const auto form = hidden == 1 ? causal_form(condition.value, queries(), keys(), is_true, is_false)
                                  : causal_form(condition.value, queries(), keys(), is_false, is_true);
    if (set_causal(*parts, form, number == kMinusInfinity)) return parts;
    if (number > kBeyondScores) return std::nullopt;  // a row that sees no key has the weights of equal scores
    // 0 or the number as a mask. A kernel's text has no infinite numbers: they stay an operand.
    std::vector<Value> operands{condition.value};
    Scalar hiding = number;
    if (chosen[hidden].value) {
      operands.push_back(chosen[hidden].value);
      hiding = scalar::input(1);
    }
    const Scalar shown = 0.0F, is_set = scalar::input(0);
    const Value mask = pointwise(
        "mask", operands, hidden == 1 ? scalar::select(is_set, hiding, shown) : scalar::select(is_set, shown, hiding));
    return set_mask(*parts, mask) ? parts : std::nullopt;
  }

  const Shape& shape_;
};

/// (B, G, S, D) where `value` (B, H, S, D) repeats each head: Reshape of Expand of (B, G, 1, S, D).
Value before_repetition(const Value& value) {
  if (op_behind<ops::Reshape>(value) == nullptr) return value;
  const Value wide = value.node().inputs[0];
  const Scalar* const copy = formula_behind(wide);
  if (copy == nullptr || copy->node().function != ScalarFunction::input || wide.node().inputs.size() != 1) return value;
  const Value narrow = wide.node().inputs[0];
  if (wide.shape().rank() != 5 || narrow.shape().rank() != 5 || op_behind<ops::Reshape>(narrow) == nullptr)
    return value;
  const Dims from = dims_of(narrow), to = dims_of(wide), dims = dims_of(value);
  if (from[2] != 1 || dims != Dims{to[0], to[1] * to[2], to[3], to[4]}) return value;
  for (const std::size_t axis : {0U, 1U, 3U, 4U}) {
    if (from[axis] != to[axis]) return value;
  }
  const Value source = narrow.node().inputs[0];
  return dims_of(source) == Dims{from[0], from[1], from[3], from[4]} ? source : value;
}

/// `value` in another shape, without a chain of reshapes.
Value in_shape(Value value, const Shape& shape) {
  while (value.shape() != shape && op_behind<ops::Reshape>(value) != nullptr) value = value.node().inputs[0];
  return value.shape() == shape ? value : reshape(value, shape);
}

/// The last two axes swapped; of a matrix that was swapped in three dimensions, (B·H, D, S), and then reshaped, there.
Value last_swapped(const Value& value) {
  const Dims dims = dims_of(value);
  if (op_behind<ops::Reshape>(value) != nullptr && dims.size() == 4) {
    const Value joined = value.node().inputs[0];
    if (dims_of(joined) == Dims{dims[0] * dims[1], dims[2], dims[3]} && op_behind<ops::Transpose>(joined) != nullptr) {
      return in_shape(transposed(joined, {0, 2, 1}), {dims[0], dims[1], dims[3], dims[2]});
    }
  }
  return transposed(value, dims.size() == 3 ? Dims{0, 2, 1} : Dims{0, 1, 3, 2});
}

/// x (B, T, H, D) where `value` is its transpose (B, H, T, D); else empty.
Value before_swap(const Value& value) {
  const auto* transpose = op_behind<ops::Transpose>(value);
  const bool is_swap = transpose != nullptr && transpose->order() == std::vector<std::size_t>{0, 2, 1, 3};
  return is_swap ? value.node().inputs[0] : Value{};
}

/// The softmax behind a Where that clears it where the scores are −∞ or it is NaN. `cleared` says whether there is one.
Value before_clearing(const Value& weights, bool& cleared) {
  cleared = false;
  const auto chosen = arguments_of(weights, ScalarFunction::select);
  if (!chosen || (*chosen)[1].number != 0.0F || !(*chosen)[0].value || !(*chosen)[2].value) return weights;
  const Value softmax = (*chosen)[2].value, condition = (*chosen)[0].value;
  if (op_behind<ops::Softmax>(softmax) == nullptr) return weights;
  cleared = true;
  if (const auto equal = arguments_of(condition, ScalarFunction::equal)) {
    const bool is_first = (*equal)[0].value == softmax.node().inputs[0] && (*equal)[1].number == kMinusInfinity;
    const bool is_second = (*equal)[1].value == softmax.node().inputs[0] && (*equal)[0].number == kMinusInfinity;
    if (is_first || is_second) return softmax;
  }
  const Scalar* const formula = formula_behind(condition);
  const auto* op = op_behind<ops::Pointwise>(condition);
  const Scalar x = scalar::input(0);
  if (formula != nullptr && condition.node().inputs.size() == 1 && condition.node().inputs[0] == softmax &&
      op->expression().str() == Expression({1.0F - scalar::equal(x, x)}, 1).str()) {
    return softmax;
  }
  return weights;
}

}  // namespace

Value attention_of(const Call& call, const Value& weights, const Value& values) {
  const std::size_t rank = weights.shape().rank();
  if ((rank != 3 && rank != 4) || values.shape().rank() != rank || weights.shape().elements() == 0) return {};
  const auto readers = [&](const Value& value) { return call.tracer().readers_of(value); };
  bool cleared = false;
  const Value softmax = before_clearing(weights, cleared);
  const auto* op = op_behind<ops::Softmax>(softmax);
  if (op == nullptr || op->log() || op->axis() != rank - 1) return {};
  const Value scores = softmax.node().inputs[0];
  if (readers(weights) > 1 || readers(softmax) > (cleared ? 2 : 1) || readers(scores) > (cleared ? 2 : 1)) return {};
  const auto parts = ScoreReader(scores.shape()).read(scores);
  if (!parts) return {};

  const auto* product = op_behind<ops::Matmul>(parts->product);
  if (product->transpose_a()) return {};
  Value q = parts->product.node().inputs[0], k = parts->product.node().inputs[1];
  if (q.shape().rank() != rank || k.shape().rank() != rank) return {};
  Factor scale = parts->scale;
  strip_factors(q, scale);
  strip_factors(k, scale);
  if (!product->transpose_b()) k = last_swapped(k);
  Value v = values, mask = parts->mask;
  if (k.shape() != v.shape() || q.shape()[-1] > kWidestHead || !std::isfinite(scale.number)) return {};
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (q.shape().dims()[i] != k.shape().dims()[i]) return {};
  }

  const Shape shape = q.shape();
  AttentionOptions options{.causal = parts->causal, .scale = scale.number};
  if (rank == 3) {  // one head
    const auto with_head = [](const Value& x) { return reshape(x, {x.shape()[0], 1, x.shape()[1], x.shape()[2]}); };
    for (Value* const x : {&q, &k, &v}) *x = with_head(*x);
    if (mask) mask = with_head(mask);
  } else {
    const Value keys = before_repetition(k), shared = before_repetition(v);
    if (keys.shape() == shared.shape()) {
      k = keys;
      v = shared;
    }
  }
  options.mask = mask;
  const auto scaled = [&](Value x) {
    for (const Value& one : scale.values) x = x * reshape(one, {1});
    return x;
  };
  const Value by_tokens[] = {before_swap(q), before_swap(k), before_swap(v)};
  if (by_tokens[0] && by_tokens[1] && by_tokens[2]) {
    options.layout = ops::HeadLayout::tokens_first;
    return transpose(attention(scaled(by_tokens[0]), by_tokens[1], by_tokens[2], options), {0, 2, 1, 3});
  }
  return in_shape(attention(scaled(q), k, v, options), shape);
}

}  // namespace concord::onnx
