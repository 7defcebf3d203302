// Pointwise operators: one ONNX operator where the formula is that of a known activation, else one for each
// instruction.
#include "concord/ops/pointwise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>

#include "concord/onnx/export/rules.hpp"

namespace concord::onnx {
namespace {

Scalar in(int i) { return scalar::input(i); }

// Activations.

/// A formula with up to two numbers, and the operator that computes it.
struct Activation {
  int parameters;
  int since;  // version of ONNX's operators
  Scalar (*formula)(float a, float b);
  const char* op;
  Attributes (*attributes)(float a, float b);
};

Attributes no_attributes(float, float) { return {}; }
Attributes alpha_of(float a, float) { return {real("alpha", a)}; }

Scalar between(float low, float high, bool closed) {
  if (!closed) {
    return scalar::select(scalar::less(in(0), low), low, scalar::select(scalar::less(high, in(0)), high, in(0)));
  }
  return scalar::select(scalar::less_equal(in(0), low), low,
                        scalar::select(scalar::less_equal(high, in(0)), high, in(0)));
}

Scalar where_positive(const Scalar& a, const Scalar& b) { return scalar::select(scalar::less(0.0F, in(0)), a, b); }

Scalar hard(const Scalar& inside, const Scalar& above) {
  return scalar::select(scalar::less_equal(in(0), -3.0F), 0.0F,
                        scalar::select(scalar::less_equal(3.0F, in(0)), above, inside));
}

constexpr float kSeluScale = 1.0507009873554804934193349852946F, kSeluAlpha = 1.6732632423543772848170429916717F;

const Activation kActivations[] = {
    {0, 13, [](float, float) { return scalar::max(in(0), 0.0F); }, "Relu", no_attributes},
    {1, 13, [](float a, float) { return where_positive(in(0), in(0) * a); }, "LeakyRelu", alpha_of},
    {1, 13, [](float a, float) { return where_positive(in(0), a * scalar::expm1(in(0))); }, "Elu", alpha_of},
    {1, 13, [](float a, float) { return where_positive(in(0), a * scalar::expm1(in(0) / a)); }, "Celu", alpha_of},
    {0, 13,
     [](float, float) { return where_positive(kSeluScale * in(0), kSeluScale * kSeluAlpha * scalar::expm1(in(0))); },
     "Selu",
     [](float, float) {
       return Attributes{real("alpha", kSeluAlpha), real("gamma", kSeluScale)};
     }},
    {0, 13, [](float, float) { return hard((in(0) + 3.0F) / 6.0F, 1.0F); }, "HardSigmoid",
     [](float, float) {
       return Attributes{real("alpha", 1.0F / 6.0F), real("beta", 0.5F)};
     }},
    {0, 14, [](float, float) { return hard(in(0) * (in(0) + 3.0F) / 6.0F, in(0)); }, "HardSwish", no_attributes},
    {0, 20, [](float, float) { return scalar::gelu(in(0)); }, "Gelu", no_attributes},
    {0, 20, [](float, float) { return scalar::gelu_tanh(in(0)); }, "Gelu",
     [](float, float) { return Attributes{text("approximate", "tanh")}; }},
};

/// A formula of up to two numbers as they stand in its code, or nothing.
template <class Formula>
std::optional<std::pair<float, float>> matched(const Expression& given, int parameters, const Formula& formula) {
  std::vector<float> numbers;
  for (const Expression::Instruction& step : given.code()) {
    if (step.function == ScalarFunction::constant) numbers.push_back(step.value);
  }
  if (parameters == 0) numbers = {0};
  if (numbers.size() > 6) return std::nullopt;
  const std::string text = given.str();
  for (const float a : numbers) {
    for (const float b : numbers) {
      if (Expression({formula(a, b)}, given.inputs()).str() == text) return std::pair{a, b};
      if (parameters < 2) break;
    }
  }
  return std::nullopt;
}

bool write_activation(NodeExport& x, const Expression& expression) {
  if (expression.results().size() != 1 || expression.code().size() > 24) return false;
  const Value input = x.node().inputs.empty() ? Value{} : x.node().inputs[0];
  if (!input || input.dtype() != DType::f32) return false;
  if (expression.inputs() == 1) {
    for (const Activation& known : kActivations) {
      if (x.opset() < known.since) continue;
      const auto numbers = matched(expression, known.parameters, known.formula);
      if (!numbers) continue;
      x.bind(0, x.add(known.op, {x.in(0)}, known.attributes(numbers->first, numbers->second)));
      return true;
    }
    for (const bool closed : {false, true}) {
      const auto range = matched(expression, 2, [&](float a, float b) { return between(a, b, closed); });
      if (!range || !(range->first < range->second)) continue;
      GraphWriter& w = x.writer();
      x.bind(0, x.add("Clip", {x.in(0), w.number(range->first), w.number(range->second)}));
      return true;
    }
  }
  const auto prelu = [](float, float) { return where_positive(in(0), in(0) * in(1)); };
  if (expression.inputs() == 2 && x.in_sizes(0) == x.out_sizes() && matched(expression, 0, prelu)) {
    x.bind(0, x.add("PRelu", {x.in(0), x.in(1)}));
    return true;
  }
  return false;
}

// Instruction by instruction.

/// The result of an instruction. Comparisons are boolean in ONNX; `number` is made of `truth` where it is needed.
struct Term {
  std::string number = {}, truth = {};
  Sizes sizes = {};
};

class FormulaWriter {
 public:
  FormulaWriter(NodeExport& x, const Expression& expression) : x_(x), expression_(expression) {
    for (const Expression::Instruction& step : expression.code()) terms_.push_back(term_of(step));
  }
  [[nodiscard]] Term& result(std::size_t k) { return terms_[static_cast<std::size_t>(expression_.results()[k])]; }
  const std::string& number(Term& term) {
    if (term.number.empty()) term.number = x_.cast(term.truth, ElementType::f32);
    return term.number;
  }

 private:
  using Step = Expression::Instruction;

  Term& argument(const Step& step, int i) { return terms_[static_cast<std::size_t>(step.arguments[i])]; }
  std::string constant(float value) { return x_.writer().number(value); }
  std::string truth(Term& term) {
    if (!term.truth.empty()) return term.truth;
    return x_.add("Not", {x_.add("Equal", {term.number, constant(0)})});
  }

  Term input(std::size_t i) {
    const std::string& name = x_.in(i);
    const bool is_f32 = x_.node().inputs[i].dtype() == DType::f32;
    return {is_f32 ? name : x_.cast(name, ElementType::f32), {}, x_.in_sizes(i)};
  }

  Term coordinate(std::size_t axis_from_last) {
    const Sizes& all = x_.out_sizes();
    const Size size = all[all.size() - 1 - axis_from_last];
    Sizes sizes(axis_from_last + 1, Size{1, false});
    sizes[0] = size;
    GraphWriter& w = x_.writer();
    if (!size.free) {
      std::vector<float> numbers(static_cast<std::size_t>(size.number));
      std::iota(numbers.begin(), numbers.end(), 0.0F);
      return {w.tensor(shape_of(sizes), numbers), {}, sizes};
    }
    const std::string end = x_.add("Squeeze", {w.sizes({size})});
    const std::string range = x_.cast(x_.add("Range", {w.integer(0), end, w.integer(1)}), ElementType::f32);
    return {x_.reshape(range, {size}, sizes), {}, sizes};
  }

  Term term_of(const Step& step) {
    switch (step.function) {
      case ScalarFunction::input: return input(static_cast<std::size_t>(step.index));
      case ScalarFunction::constant: return {constant(step.value), {}, {}};
      case ScalarFunction::coordinate: return coordinate(static_cast<std::size_t>(step.index));
      default: break;
    }
    Sizes sizes;
    for (int i = 0; i < 3 && step.arguments[i] >= 0; ++i) sizes = broadcast(sizes, argument(step, i).sizes);
    const auto a = [&] { return number(argument(step, 0)); };
    const auto b = [&] { return number(argument(step, 1)); };
    switch (step.function) {
      case ScalarFunction::less: return {{}, x_.add("Less", {a(), b()}), sizes};
      case ScalarFunction::less_equal: return {{}, x_.add("LessOrEqual", {a(), b()}), sizes};
      case ScalarFunction::equal: return {{}, x_.add("Equal", {a(), b()}), sizes};
      case ScalarFunction::is_finite:
        // A difference from itself is NaN where it is not finite.
        return {{}, x_.add("Equal", {x_.subtract(a(), a()), constant(0)}), sizes};
      case ScalarFunction::select:
        return {x_.add("Where", {truth(argument(step, 0)), b(), number(argument(step, 2))}), {}, sizes};
      default: break;
    }
    const std::string_view name = info_of(step.function).name;
    return {info_of(step.function).arity == 2 ? of_two(name, a(), b()) : of_one(name, a()), {}, sizes};
  }

  std::string of_two(std::string_view name, const std::string& a, const std::string& b) {
    static const std::map<std::string_view, const char*> kOperators{
        {"add", "Add"},     {"subtract", "Sub"}, {"multiply", "Mul"}, {"divide", "Div"},
        {"minimum", "Min"}, {"maximum", "Max"},  {"power", "Pow"}};
    if (name == "exp_product") return x_.add("Exp", {x_.multiply(a, b)});
    if (name == "atan2") return angle(a, b);
    const auto found = kOperators.find(name);
    if (found == kOperators.end()) NodeExport::refuse(fmt::format("ONNX has no function '{}'", name));
    return x_.add(found->second, {a, b});
  }

  std::string of_one(std::string_view name, const std::string& a) {
    static const std::map<std::string_view, const char*> kOperators{
        {"negate", "Neg"},       {"abs", "Abs"},   {"exp", "Exp"},     {"log", "Log"},     {"sqrt", "Sqrt"},
        {"sin", "Sin"},          {"cos", "Cos"},   {"tanh", "Tanh"},   {"erf", "Erf"},     {"sigmoid", "Sigmoid"},
        {"floor", "Floor"},      {"asin", "Asin"}, {"acos", "Acos"},   {"atan", "Atan"},   {"rint", "Round"},
        {"sinh", "Sinh"},        {"cosh", "Cosh"}, {"asinh", "Asinh"}, {"acosh", "Acosh"}, {"atanh", "Atanh"},
        {"softplus", "Softplus"}};
    const auto found = kOperators.find(name);
    if (found != kOperators.end()) return x_.add(found->second, {a});
    if (name == "expm1") return x_.subtract(x_.add("Exp", {a}), constant(1));
    if (name == "log1p") return x_.add("Log", {x_.add_to(a, constant(1))});
    if (name == "log2") return x_.multiply(x_.add("Log", {a}), 1.44269504088896340736F);
    if (name == "rsqrt") return x_.add("Reciprocal", {x_.add("Sqrt", {a})});
    if (name == "normal_cdf") return normal_cdf(a);
    if (name == "sigmoid_slope") return x_.multiply(sigmoid(a), sigmoid(x_.add("Neg", {a})));
    if (name == "silu") return x_.multiply(a, sigmoid(a));
    if (name == "silu_slope") return swish_slope(a, sigmoid(a), a);
    if (name == "gelu") return x_.multiply(a, normal_cdf(a));
    if (name == "gelu_slope") return x_.add_to(normal_cdf(a), x_.multiply(a, normal_density(a)));
    if (name == "gelu_tanh") return x_.multiply(a, sigmoid(gelu_argument(a)));
    if (name == "gelu_tanh_slope") {
      const std::string square = x_.multiply(x_.multiply(a, a), 3 * kCubic * kGelu);
      return swish_slope(a, sigmoid(gelu_argument(a)), x_.multiply(a, x_.add_to(square, constant(kGelu))));
    }
    NodeExport::refuse(fmt::format("ONNX has no function '{}'", name));
  }

  /// atan2(a, b) by the quotient of the smaller and the larger; zeros have no sign.
  std::string angle(const std::string& a, const std::string& b) {
    const std::string is_steep = x_.add("Less", {x_.add("Abs", {b}), x_.add("Abs", {a})});
    const std::string large = x_.add("Where", {is_steep, a, b}), small = x_.add("Where", {is_steep, b, a});
    const std::string divisor = x_.add("Where", {x_.add("Equal", {large, constant(0)}), constant(1), large});
    const std::string near = x_.add("Atan", {x_.divide(small, divisor)});
    constexpr float kPi = 3.14159265358979323846F;
    const std::string is_below = x_.add("Less", {a, constant(0)}), is_back = x_.add("Less", {b, constant(0)});
    const std::string quarter = x_.add("Where", {is_below, constant(-kPi / 2), constant(kPi / 2)});
    const std::string half = x_.add("Where", {is_below, constant(-kPi), constant(kPi)});
    const std::string flat = x_.add("Where", {is_back, x_.add_to(near, half), near});
    return x_.add("Where", {is_steep, x_.subtract(quarter, near), flat});
  }

  static constexpr float kGelu = 1.5957691216057308F, kCubic = 0.044715F;  // 2·√(2/π)

  std::string sigmoid(const std::string& a) { return x_.add("Sigmoid", {a}); }
  /// The slope of a·s(u) with s the sigmoid: s + c·s·(1 − s) with c = a·u'.
  std::string swish_slope(const std::string&, const std::string& s, const std::string& c) {
    const std::string slope = x_.multiply(s, x_.subtract(constant(1), s));
    return x_.add_to(s, x_.multiply(c, slope));
  }
  /// 2·√(2/π)·(a + 0.044715·a³)
  std::string gelu_argument(const std::string& a) {
    const std::string cube = x_.multiply(x_.multiply(x_.multiply(a, a), a), kCubic);
    return x_.multiply(x_.add_to(a, cube), kGelu);
  }
  std::string normal_cdf(const std::string& a) {
    const std::string erf = x_.add("Erf", {x_.multiply(a, 0.70710678118654752440F)});
    return x_.multiply(x_.add_to(erf, constant(1)), 0.5F);
  }
  std::string normal_density(const std::string& a) {
    const std::string exponent = x_.multiply(x_.multiply(a, a), -0.5F);
    return x_.multiply(x_.add("Exp", {exponent}), 0.39894228040143267794F);
  }

  NodeExport& x_;
  const Expression& expression_;
  std::vector<Term> terms_;
};

void write_pointwise(NodeExport& x) {
  const auto& op = x.op<ops::Pointwise>();
  if (write_joined(x) || write_activation(x, op.expression())) return;
  FormulaWriter formula(x, op.expression());
  for (std::size_t k = 0; k < op.types().size(); ++k) {
    if (!x.is_used(k)) continue;
    Term& term = formula.result(k);
    std::string name = formula.number(term);
    if (op.types()[k] != DType::f32) name = x.cast(name, element_of(op.types()[k]));
    if (term.sizes != x.out_sizes(k)) name = x.add("Expand", {name, x.writer().sizes(x.out_sizes(k))});
    x.bind(k, name);
  }
}

}  // namespace

void add_pointwise_rules(Rules& rules) { rules[typeid(ops::Pointwise)] = write_pointwise; }

}  // namespace concord::onnx
