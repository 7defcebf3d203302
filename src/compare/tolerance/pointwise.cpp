// Formulas by themselves, and those of groups.
#include "concord/compare/tolerance/pointwise.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "concord/ops/all_finite.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/pointwise_group.hpp"

namespace concord {
namespace {

constexpr double kRelative = 4e-5;

using NodeInputs = std::vector<const Tensor*>;

/// How far two tensors of one size part in some elements that lie all over them.
double sampled_difference(const Tensor& a, const Tensor& b) {
  constexpr std::size_t kSamples = 64;
  const auto x = a.values<float>(), y = b.values<float>();
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); i += x.size() / kSamples + 1) {
    sum += std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
  }
  return sum;
}

/// An update moves a variable by little: what moved it is rounded to its own size, the variable by a few bits. The
/// variable is the input that is nearest to the result.
double update_tolerance(const NodeInputs& inputs, const Tensor& result, Magnitudes& magnitudes) {
  const Tensor* variable = nullptr;
  for (const Tensor* input : inputs) {
    if (input->dtype() != DType::f32 || input->elements() != result.elements()) continue;
    if (!variable || sampled_difference(*input, result) < sampled_difference(*variable, result)) variable = input;
  }
  const double largest = magnitudes.of(result).largest;
  return 32 * kUnitRoundoff * largest + kRelative * (variable ? largest_difference(*variable, result) : largest);
}

constexpr std::array<float, 5> kNumbers{0.75F, -1.25F, 0.375F, 1.5F, -0.625F};
constexpr std::array<std::int64_t, 8> kCoordinates{1, 2};

/// Operands from kNumbers, from this place on.
std::vector<float> point_of(const Expression& expression, std::size_t start) {
  std::vector<float> point(static_cast<std::size_t>(expression.inputs()));
  for (std::size_t i = 0; i < point.size(); ++i) point[i] = kNumbers[(start + i) % kNumbers.size()];
  return point;
}

/// Whether formula k doubles where this input does, changes its sign with it and is 0 where it is: tried at some
/// points.
bool is_proportional(const Expression& expression, std::size_t k, std::size_t input) {
  for (std::size_t start = 0; start < kNumbers.size(); ++start) {
    std::vector<float> point = point_of(expression, start);
    const float number = point[input], once = expression.evaluate(k, point, kCoordinates);
    for (const float factor : {2.0F, -1.0F, 0.0F}) {
      point[input] = factor * number;
      if (!(expression.evaluate(k, point, kCoordinates) == factor * once)) return false;
    }
  }
  return true;
}

/// Whether no formula jumps where this input passes the limit: tried at some points.
bool is_continuous_at(const Expression& expression, std::size_t input, float limit) {
  for (std::size_t start = 0; start < kNumbers.size(); ++start) {
    std::vector<float> point = point_of(expression, start);
    for (std::size_t k = 0; k < expression.results().size(); ++k) {
      const auto value = [&](float towards) {
        point[input] = std::nextafter(limit, towards);
        return expression.evaluate(k, point, kCoordinates);
      };
      const float there = value(limit);
      for (const float side : {value(-INFINITY), value(INFINITY)}) {
        if (!(std::abs(side - there) <= 1e-4F * std::max(1.0F, std::abs(there)))) return false;
      }
    }
  }
  return true;
}

}  // namespace

bool may_jump(const Expression& expression, std::span<const Tensor> inputs) {
  using F = ScalarFunction;
  using Instruction = Expression::Instruction;
  const auto code = expression.code();
  std::vector<bool> is_exact;
  for (const Instruction& one : code) {
    is_exact.push_back(one.function != F::input || inputs[static_cast<std::size_t>(one.index)].dtype() != DType::f32);
    for (const std::int32_t argument : one.arguments) {
      if (argument >= 0 && !is_exact[static_cast<std::size_t>(argument)]) is_exact.back() = false;
    }
  }
  const auto jumps_at = [&](const Instruction& one, const Instruction& limit) {
    if (one.function != F::input || limit.function != F::constant) return true;
    return limit.value != 0 && !is_continuous_at(expression, static_cast<std::size_t>(one.index), limit.value);
  };
  for (std::size_t i = 0; i < code.size(); ++i) {
    const Instruction& one = code[i];
    if (is_exact[i]) continue;
    if (one.function == F::floor || one.function == F::rint) return true;
    if (one.function != F::less && one.function != F::less_equal && one.function != F::equal) continue;
    const Instruction& a = code[static_cast<std::size_t>(one.arguments[0])];
    const Instruction& b = code[static_cast<std::size_t>(one.arguments[1])];
    if (jumps_at(a, b) && jumps_at(b, a)) return true;
  }
  return false;
}

double pointwise_tolerance(const ReplayedNode& node, std::span<const Tensor> results, std::size_t k,
                           Magnitudes& magnitudes) {
  NodeInputs inputs;
  if (const auto* group = dynamic_cast<const ops::PointwiseGroup*>(node.op)) {
    // What its own member reads, and not the numbers of the others.
    for (std::size_t i = 0; i < group->reach().size(); ++i) {
      inputs.push_back(&node.inputs[group->place_of(k / group->results(), i)]);
    }
    return update_tolerance(inputs, results[k], magnitudes);
  }
  if (const auto* numbers = dynamic_cast<const ops::AllFiniteWithNumbers*>(node.op)) {
    for (const Tensor& input : std::span(node.inputs).subspan(numbers->tensors())) inputs.push_back(&input);
    return update_tolerance(inputs, results[k], magnitudes);
  }
  if (node.entry.pass == Pass::update) {
    for (const Tensor& input : node.inputs) inputs.push_back(&input);
    return update_tolerance(inputs, results[k], magnitudes);
  }
  return kRelative * (magnitudes.of(results[k]).largest + 0.01 * pointwise_scale(node, k, magnitudes));
}

double pointwise_scale(const ReplayedNode& node, std::size_t k, Magnitudes& magnitudes) {
  const Expression& expression = dynamic_cast<const ops::Pointwise&>(*node.op).expression();
  std::vector<double> sizes;
  for (const Tensor& input : node.inputs)
    sizes.push_back(input.dtype() == DType::f32 ? magnitudes.of(input).largest : 0);
  double scale = sizes.empty() ? 0 : *std::ranges::max_element(sizes);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (node.inputs[i].dtype() != DType::f32 || !is_proportional(expression, k, i)) continue;
    double others = 1;
    for (std::size_t j = 0; j < sizes.size(); ++j) others = j == i ? others : std::max(others, sizes[j]);
    scale = std::min(scale, sizes[i] * others);
  }
  return scale;
}

}  // namespace concord
