// Rounding in fp32, and what other precisions and subnormal numbers add.
#include "concord/compare/tolerance/tolerance.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "concord/compare/reference64/prologued.hpp"
#include "concord/compare/tolerance/operand_scale.hpp"
#include "concord/compare/tolerance/rounding.hpp"
#include "concord/ops/all_finite.hpp"
#include "concord/ops/attention.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/pointwise_group.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/recurrent.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/top_k.hpp"

namespace concord {
namespace {

constexpr double kSmallestNormal = 0x1p-126;
/// A tolerance is at least 2⁻²⁰ of what is rounded.
constexpr double kLeastOfOverflow = 0x1p-20 * std::numeric_limits<float>::max();

bool is_attention(const Operator* op) {
  return is<ops::Attention>(op) || is<ops::AttentionBackwardQuery>(op) || is<ops::AttentionBackwardKeyValue>(op);
}

// The most numbers that anything in it sums up: products, or those that become one of its smallest result.
double summed_terms(const SizedNode& node) {
  double terms = product_terms(node);
  for (const Tensor& result : node.results) {
    const auto parts = static_cast<double>(std::max<std::int64_t>(result.elements(), 1));
    for (const Tensor& input : node.inputs) terms = std::max(terms, static_cast<double>(input.elements()) / parts);
  }
  return terms;
}

double largest_number(const SizedNode& node, std::size_t k) {
  return std::max(node.largest(node.results[k]), operand_scale(node, k));
}

// What rounded factors add.
double factor_tolerance(const SizedNode& node, std::size_t k, Precision precision) {
  if (precision == Precision::fp32) return 0;
  const double unit = unit_of(precision);
  if (is<ops::RecurrentFamily>(node.op)) return 64 * unit * node.largest(node.results[k]);
  if (is_attention(node.op)) return node.of_attention(k, unit);
  if (!is_product(unfused(node.op))) return 0;
  return 4 * unit * product_terms(node) * factor_scale(node, 0) * factor_scale(node, 1);
}

// Operators whose integer results are indices of largest values.
bool finds_largest(const Operator* op) { return is<ops::MaxPool>(op) || is<ops::Reduce>(op) || is<ops::TopK>(op); }

bool stores_in_16_bits(Precision precision) { return precision == Precision::bf16 || precision == Precision::fp16; }

// What it adds that a device may store values in 16 bits: operands and result are rounded, sums of rounded terms.
double storage_tolerance(const SizedNode& node, std::size_t k, Precision precision) {
  if (!stores_in_16_bits(precision) || is<ops::RecurrentFamily>(node.op)) return 0;
  if (is<ops::PointwiseGroup>(node.op) || is<ops::AllFiniteWithNumbers>(node.op)) return 0;  // variables are f32
  constexpr std::size_t kStored = 2;                                                         // dimensions at least
  const auto may_be_stored = [](const Tensor& tensor) { return tensor.shape().rank() >= kStored; };
  if (!may_be_stored(node.results[0]) && std::ranges::none_of(node.inputs, may_be_stored)) return 0;
  const Operator* op = unfused(node.op);
  const Tensor& result = node.results[k];
  const double unit = unit_of(precision);
  const double whole = node.inputs.empty() ? 0 : static_cast<double>(node.inputs[0].elements());
  const double terms = std::max(1.0, whole / static_cast<double>(std::max<std::int64_t>(result.elements(), 1)));
  if (is<ops::BatchNorm>(op) && k == 0) {
    // A value is as many deviations from the mean as its error is parts of a deviation.
    return unit * (2 * node.largest(result) + 8 * node.largest(node.inputs[1]) + node.largest(node.inputs[2]));
  }
  if (is<ops::BatchNormBackward>(op) && k > 0)
    return unit * terms * 8 * node.rms(node.inputs[1]) + unit * node.largest(result);
  if (is<ops::Reduce>(op) || is<ops::AvgPool>(op))
    return unit * (terms * node.rms(node.inputs[0]) + node.largest(result));
  if (const auto* pointwise = dynamic_cast<const ops::Pointwise*>(op);
      pointwise != nullptr && may_jump(pointwise->expression(), node.inputs)) {
    return 2 * std::max(largest_number(node, k), node.scale_of_pointwise(k));
  }
  if (is<ops::Pointwise>(op)) return 8 * unit * std::max(node.largest(result), node.scale_of_pointwise(k));
  return 8 * unit * largest_number(node, k);
}

}  // namespace

double tolerance_of(const ReplayedNode& node, std::span<const Tensor> results, std::size_t k, Precision precision,
                    Magnitudes& magnitudes) {
  if (results[k].dtype() != DType::f32) {
    return finds_largest(node.op) && stores_in_16_bits(precision) ? INFINITY : 0;
  }
  if (const auto base = float64::without_prologue(node)) {
    return tolerance_of(*base, results, k, precision, magnitudes);
  }
  const SizedNode sized(node, results, magnitudes);
  const double tolerance = rounding_of(sized, k) + storage_tolerance(sized, k, precision);
  if (tolerance == 0) return 0;
  // A device may take numbers below the smallest normal one for 0, each product of a sum among them, before it
  // multiplies by others.
  const double factor = is_softmax(node.op) ? 1 : std::max(largest_number(sized, k), 1.0);
  const double lost = kSmallestNormal * std::max(summed_terms(sized), 1.0) * factor;
  return tolerance + factor_tolerance(sized, k, precision) + lost;
}

double comparable_error(double error, double tolerance) {
  const bool may_overflow = std::isinf(error) && tolerance > kLeastOfOverflow;
  return std::isinf(tolerance) || may_overflow ? 0 : error;
}

double tolerance_of(const ReplayedNode& node, std::size_t k, Precision precision) {
  Magnitudes magnitudes;
  return tolerance_of(node, node.results, k, precision, magnitudes);
}

}  // namespace concord
