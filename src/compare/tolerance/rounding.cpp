// A rule for each family of operators.
#include "concord/compare/tolerance/rounding.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "concord/compare/tolerance/operand_scale.hpp"
#include "concord/ops/all_finite.hpp"
#include "concord/ops/attention.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/ctc.hpp"
#include "concord/ops/fused.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/gather_along.hpp"
#include "concord/ops/loss_gradient.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/pointwise_group.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/random.hpp"
#include "concord/ops/recurrent.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/resample.hpp"
#include "concord/ops/row_norm.hpp"
#include "concord/ops/scan.hpp"
#include "concord/ops/softmax.hpp"

namespace concord {
namespace {

double sum_tolerance(double terms, double scale) {
  return 4 * std::max(8.0, std::sqrt(terms) / 4) * kUnitRoundoff * terms * scale;
}

// If nearly all values are 0, their rms does not describe the few that are added up.
double sparse_tolerance(const SizedNode& node, const Tensor& result) {
  return 8 * kUnitRoundoff * (node.largest(result) + node.largest(node.inputs[0]));
}

double rounding_tolerance(const SizedNode& node, std::size_t k) {
  return 4e-5 * (node.largest(node.results[k]) + 0.01 * operand_scale(node, k));
}

// Where the terms of a gradient cancel out a device may find 0, and double precision what its own rounding leaves of
// these operands' product.
double cancellation_tolerance(const SizedNode& node, std::initializer_list<std::size_t> operands, double factor = 1) {
  double size = 1;
  for (const std::size_t i : operands) size *= node.largest(node.inputs[i]);
  return size == 0 ? 0 : 0x1p-44 * factor * size;
}

// Of the channel where it is largest; 0 where no channel has one. Without an epsilon a variance of 0 divides by 0.
double largest_inverse_deviation(const ops::BatchNormBackward& op, const Tensor& variances) {
  double least = INFINITY;
  for (const float variance : variances.values<float>()) {
    const double sum = static_cast<double>(variance) + static_cast<double>(op.epsilon());
    if (sum > 0) least = std::min(least, sum);
  }
  return 1 / std::sqrt(least);
}

// The dimensions of a factor over which one number of the result sums its products, of groups those of all together.
// Of an image whose channels are summed: all of it, since its places are much alike.
std::vector<std::size_t> summed_dimensions(const Operator* op, std::size_t input, std::size_t rank) {
  if (const auto* matmul = dynamic_cast<const ops::Matmul*>(op)) {
    const bool sums_over_last = input == 0 ? !matmul->transpose_a() : matmul->transpose_b();
    return {rank - (sums_over_last ? 1 : 2)};
  }
  const bool is_whole_image = input == 0 && !is<ops::ConvBackwardWeights>(op);
  const std::size_t kept = is<ops::Conv>(op) ? 0 : 1;  // weights (O, C, …), images (N, C, …)
  std::vector<std::size_t> summed;
  for (std::size_t dimension = 0; dimension < rank; ++dimension) {
    if (is_whole_image || dimension != kept) summed.push_back(dimension);
  }
  return summed;
}

// Where few numbers of an operand are large, one product of the largest is the most that is rounded, and whatever is
// added to it afterwards is rounded to its size.
double product_tolerance(const SizedNode& node) {
  const double terms = product_terms(node), most = node.largest(node.inputs[0]) * node.largest(node.inputs[1]);
  return sum_tolerance(terms, factor_scale(node, 0) * factor_scale(node, 1)) + (16 + terms) * kUnitRoundoff * most;
}

// Results and their statistics: means may be next to nothing, where the numbers they are taken of cancel out.
double forward_norm_tolerance(const SizedNode& node, std::size_t k, double part) {
  return part * (node.largest(node.results[k]) + (k == 0 ? 0 : node.rms(node.inputs[0])));
}

// Of batch norm's second and third result, the gradients of scale and shift, the terms may cancel out as well.
double batch_norm_backward_tolerance(const SizedNode& node, const ops::BatchNormBackward& op, std::size_t k) {
  constexpr std::size_t kVariance = 4;
  const double relative = 2e-4 * node.largest(node.results[k]);
  if (k == 0) {
    return relative + cancellation_tolerance(node, {1, 2}, largest_inverse_deviation(op, node.inputs[kVariance]));
  }
  const double terms =
      static_cast<double>(node.inputs[0].elements() / std::max<std::int64_t>(node.results[k].elements(), 1));
  return relative + sum_tolerance(terms, node.rms(node.inputs[1]));
}

// The size of the terms of a sum: of those of the largest, since the numbers of one column may be far larger than the
// others.
double term_scale(const SizedNode& node) {
  const auto* reduce = dynamic_cast<const ops::Reduce*>(node.op);
  return reduce == nullptr ? node.rms(node.inputs[0]) : node.largest_rms_along(node.inputs[0], reduce->axes());
}

bool is_row_norm(const Operator* op) { return is<ops::RowNorm>(op) || is<ops::RowNormBackward>(op); }

bool is_pool_or_sum(const Operator* op) {
  return is<ops::MaxPoolBackward>(op) || is<ops::AvgPoolBackward>(op) || is<ops::Reduce>(op);
}

// The epilogue may have cut off the normalised values, a few deviations times a scale; or taken away their gradient's
// largest part.
double fused_row_norm_tolerance(const SizedNode& node, std::size_t k) {
  if (k != 0) return forward_norm_tolerance(node, k, 2e-4);
  const auto* op = static_cast<const ops::Fused*>(node.op);
  const bool is_gradient = is<ops::RowNormBackward>(op->base().get());
  const auto extra = std::span(node.inputs).subspan(op->base_inputs());
  double size = extra.empty() && !is_gradient ? 1 : 0;
  for (const Tensor& operand : extra) size += operand.dtype() == DType::f32 ? node.largest(operand) : 1;
  const double tolerance = 2e-4 * (node.largest(node.results[0]) + (is_gradient ? 1 : 8) * size);
  return tolerance + (is_gradient ? cancellation_tolerance(node, {0, 2}) : 0);
}

/// The largest number of rows or values that `index` adds up in one place of [0, size). The indices form lines of
/// `length` elements that are `inner` apart.
double most_in_one_place(std::span<const std::int32_t> index, std::size_t length, std::size_t size, std::size_t inner) {
  std::vector<std::int32_t> counts(index.size() / std::max<std::size_t>(length, 1) * size);
  for (std::size_t i = 0; i < index.size(); ++i) {
    const auto place = static_cast<std::size_t>(index[i]);  // negative ones are far outside
    if (place < size) ++counts[(i / (inner * length) * size + place) * inner + i % inner];
  }
  return counts.empty() ? 1 : std::max(1, *std::ranges::max_element(counts));
}

/// Nothing for an operator that adds up no scattered values.
std::optional<double> scattered_terms(const SizedNode& node) {
  if (const auto* scatter = dynamic_cast<const ops::ScatterAdd*>(node.op)) {
    const auto index = node.inputs[1].values<std::int32_t>();
    const double base = node.inputs.size() > ops::ScatterAdd::kBase ? 1 : 0;
    return base + most_in_one_place(index, index.size(), static_cast<std::size_t>(scatter->rows()), 1);
  }
  if (const auto* scatter = dynamic_cast<const ops::ScatterAddAlong*>(node.op)) {
    const auto dims = node.inputs[1].shape().dims();
    std::size_t inner = 1;
    for (const std::int64_t size : dims.subspan(scatter->axis() + 1)) inner *= static_cast<std::size_t>(size);
    return most_in_one_place(node.inputs[1].values<std::int32_t>(), static_cast<std::size_t>(dims[scatter->axis()]),
                             static_cast<std::size_t>(scatter->size()), inner);
  }
  return std::nullopt;
}

// The most windows that share a number of the source.
double windows_of_one_place(const ops::PoolOptions& options) {
  double windows = 1;
  for (std::size_t axis = 0; axis < options.kernel.size(); ++axis) {
    const std::int64_t taps = options.kernel[axis], stride = options.stride[axis];
    const std::int64_t width = (taps - 1) * options.dilation[axis] + 1;
    windows *= options.is_adaptive() ? 2 : static_cast<double>(std::min(taps, (width + stride - 1) / stride));
  }
  return windows;
}

// --- the families; a rule gives nothing for operators of another

using Rule = std::optional<double> (*)(const SizedNode& node, std::size_t k);

std::optional<double> of_product(const SizedNode& node, std::size_t) {
  if (!is_product(node.op)) return {};
  return product_tolerance(node);
}

std::optional<double> of_fused(const SizedNode& node, std::size_t k) {
  if (!is<ops::Fused>(node.op)) return {};
  if (is_row_norm(unfused(node.op))) return fused_row_norm_tolerance(node, k);
  if (is_pool_or_sum(unfused(node.op))) {
    const auto* op = static_cast<const ops::Fused*>(node.op);
    return rounding_of({node, op->base().get(), op->base_inputs()}, k) + rounding_tolerance(node, k);
  }
  if (!is<ops::BatchNorm>(unfused(node.op))) return product_tolerance(node) + rounding_tolerance(node, k);
  if (k != 0) return forward_norm_tolerance(node, k, 2e-5);
  // The normalised values, which the epilogue may have cut off, are a few deviations times the scale, and the shift.
  const double normalised = 8 * node.largest(node.inputs[1]) + node.largest(node.inputs[2]);
  return 2e-5 * (normalised + node.largest(node.results[k]));
}

std::optional<double> of_scattered_sum(const SizedNode& node, std::size_t k) {
  const auto terms = scattered_terms(node);
  if (!terms) return {};
  return sum_tolerance(*terms, node.rms(node.inputs[0])) + sparse_tolerance(node, node.results[k]);
}

std::optional<double> of_sum(const SizedNode& node, std::size_t k) {
  const auto* reduce = dynamic_cast<const ops::Reduce*>(node.op);
  const bool is_pool = is<ops::AvgPool>(node.op) || is<ops::AvgPoolBackward>(node.op);
  if (!is_pool && (reduce == nullptr || reduce->kind() != ops::ReduceKind::sum)) return {};
  const Tensor& result = node.results[k];
  const double terms = std::max(1.0, static_cast<double>(node.inputs[0].elements()) /
                                         static_cast<double>(std::max<std::int64_t>(result.elements(), 1)));
  return sum_tolerance(terms, term_scale(node)) + (is_pool ? sparse_tolerance(node, result) : 0);
}

// Of squares nothing cancels out.
std::optional<double> of_euclidean_norm(const SizedNode& node, std::size_t k) {
  const auto* reduce = dynamic_cast<const ops::Reduce*>(node.op);
  if (reduce == nullptr || reduce->kind() != ops::ReduceKind::norm) return {};
  return 64 * kUnitRoundoff * node.largest(node.results[k]);
}

// A factor counts for as much as all roundings before it.
std::optional<double> of_multiplication(const SizedNode& node, std::size_t k) {
  const auto* reduce = dynamic_cast<const ops::Reduce*>(node.op);
  if (reduce == nullptr || reduce->kind() != ops::ReduceKind::product) return {};
  const double factors = static_cast<double>(node.inputs[0].elements()) /
                         static_cast<double>(std::max<std::int64_t>(node.results[k].elements(), 1));
  return 4 * (1 + factors) * kUnitRoundoff * node.largest(node.results[k]);
}

std::optional<double> of_resampling(const SizedNode& node, std::size_t k) {
  if (!is<ops::Resample>(node.op)) return {};
  return sum_tolerance(product_terms(node), node.rms(node.inputs[0])) + sparse_tolerance(node, node.results[k]);
}

std::optional<double> of_scan(const SizedNode& node, std::size_t k) {
  const auto* scan = dynamic_cast<const ops::CumSum*>(node.op);
  if (scan == nullptr) return {};
  const std::array<std::size_t, 1> axis{scan->axis()};
  const double terms = static_cast<double>(node.results[k].shape().dims()[scan->axis()]);
  return sum_tolerance(terms, node.largest_rms_along(node.inputs[0], axis)) +
         kUnitRoundoff * node.largest(node.results[k]);
}

std::optional<double> of_max_pool_gradient(const SizedNode& node, std::size_t) {
  const auto* pool = dynamic_cast<const ops::MaxPoolBackward*>(node.op);
  if (pool == nullptr) return {};
  const double windows = windows_of_one_place(ops::pool_sizes(pool->src(), pool->options()).options);
  return windows <= 1 ? 0 : windows * windows * kUnitRoundoff * node.largest(node.inputs[0]);
}

std::optional<double> of_norm(const SizedNode& node, std::size_t k) {
  if (is<ops::BatchNorm>(node.op)) return forward_norm_tolerance(node, k, 2e-5);
  if (const auto* batch_norm = dynamic_cast<const ops::BatchNormBackward*>(node.op)) {
    return batch_norm_backward_tolerance(node, *batch_norm, k);
  }
  if (is<ops::RowNorm>(node.op)) return forward_norm_tolerance(node, k, 2e-4);
  if (is<ops::RowNormBackward>(node.op)) {
    return 2e-4 * node.largest(node.results[k]) + cancellation_tolerance(node, {0, 2});
  }
  return {};
}

std::optional<double> of_sequence(const SizedNode& node, std::size_t k) {
  const Tensor& result = node.results[k];
  if (is<ops::RecurrentFamily>(node.op)) return 1e-4 * node.largest(result);  // roundings pass from step to step
  if (is<ops::Attention>(node.op)) return rounding_tolerance(node, k);
  const bool is_gradient = is<ops::AttentionBackwardQuery>(node.op) || is<ops::AttentionBackwardKeyValue>(node.op);
  if (is_gradient) {
    const std::size_t factor = is<ops::AttentionBackwardQuery>(node.op) ? 1 : 0;  // k, or q
    return 2e-4 * node.largest(result) + cancellation_tolerance(node, {2, 3, factor});
  }
  return {};
}

std::optional<double> of_joined(const SizedNode& node, std::size_t k) {
  if (is<ops::AllFiniteWithNumbers>(node.op)) return k == 0 ? 0 : node.of_pointwise(k);
  if (!is<ops::CrossEntropyWithGradient>(node.op)) return {};
  return rounding_tolerance(node, k);
}

std::optional<double> of_formula(const SizedNode& node, std::size_t k) {
  if (is<ops::Pointwise>(node.op) || is<ops::PointwiseGroup>(node.op)) return node.of_pointwise(k);
  // An exponent is rounded in proportion to its distance from the largest, and its power falls faster.
  constexpr double kLeast = 1e-6;
  if (is_softmax(node.op)) return 4e-5 * std::max(node.largest(node.results[k]), kLeast);
  const auto* random = dynamic_cast<const ops::Random*>(node.op);
  const bool takes_exponentials = is<ops::Softmax>(node.op) || is<ops::SoftmaxBackward>(node.op) ||
                                  is<ops::CrossEntropy>(node.op) || is<ops::Ctc>(node.op) ||
                                  (random && random->distribution() == ops::Distribution::normal);
  if (takes_exponentials) return rounding_tolerance(node, k);
  return {};
}

constexpr std::array<Rule, 13> kRules{
    of_product,    of_fused, of_scattered_sum,     of_sum,  of_euclidean_norm, of_multiplication,
    of_resampling, of_scan,  of_max_pool_gradient, of_norm, of_sequence,       of_joined,
    of_formula};

}  // namespace

const Operator* unfused(const Operator* op) {
  const auto* fused = dynamic_cast<const ops::Fused*>(op);
  return fused != nullptr ? fused->base().get() : op;
}

bool is_product(const Operator* op) { return is<ops::Matmul>(op) || is<ops::ConvFamily>(op); }

double product_terms(const SizedNode& node) {
  return node.entry.cost.flops / 2 / static_cast<double>(std::max<std::int64_t>(node.results[0].elements(), 1));
}

double factor_scale(const SizedNode& node, std::size_t input) {
  const Tensor& factor = node.inputs[input];
  const auto summed = summed_dimensions(unfused(node.op), input, factor.shape().rank());
  return summed.size() == factor.shape().rank() ? node.rms(factor) : node.largest_rms_along(factor, summed);
}

double rounding_of(const SizedNode& node, std::size_t k) {
  for (const Rule rule : kRules) {
    if (const auto tolerance = rule(node, k)) return *tolerance;
  }
  return 0;  // it moves numbers, or finds them
}

}  // namespace concord
