// Reductions of ONNX: sums, means, extremes, products and norms over axes, their arguments, and running sums.
#include <algorithm>
#include <cmath>
#include <limits>

#include "concord/core/check.hpp"
#include "concord/onnx/operators/indexing.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/operators/views.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/rearrange.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/scan.hpp"

namespace concord::onnx {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct ReductionRule {
  Value (*reduce)(Value x, Dims axes, bool keep);
  double empty = 0;  // of no elements; an infinite one stands for the limit of an integer type
  // On the host, for the forms that shapes need; null for others.
  double (*join)(double a, double b) = nullptr;
  bool is_mean = false;
  std::int64_t axes_input_since = 18;
  // Of integers, where a fraction is cut off; null where `reduce` gives whole numbers.
  Value (*whole)(Value x, Dims axes, bool keep) = nullptr;
  // Of a number by itself, where there is no axis; null: the number.
  Scalar (*alone)(const Scalar& x) = nullptr;
};

Value log_sum_exp(Value x, Dims axes, bool keep) {
  const Value largest = reduce_max(x, axes, true);
  const Scalar second = scalar::input(1);
  const Scalar shift = scalar::select(scalar::is_finite(second), second, 0.0F);  // ∞ - ∞ is NaN
  const Value shifted = pointwise("shifted_exp", {x, largest}, scalar::exp(scalar::input(0) - shift));
  const Value total = sum(shifted, axes, true);
  const Value y = pointwise("log_sum_exp", {total, largest}, scalar::log(scalar::input(0)) + shift);
  if (keep) return y;
  return reshape(y, sum(x, axes, false).shape());
}

Value log_sum(Value x, Dims axes, bool keep) { return log(sum(x, axes, keep)); }

Value whole_mean(Value x, Dims axes, bool keep) {
  const Value total = sum(x, axes, keep);
  const auto count = static_cast<float>(x.shape().elements() / total.shape().elements());
  return pointwise("whole_mean", {total}, whole_quotient(scalar::input(0), count));
}

Value whole_norm(Value x, Dims axes, bool keep) {
  return pointwise("whole_norm", {sum(square(x), axes, keep)}, whole_root(scalar::input(0)));
}

template <Value (*reduce)(Value x, Dims axes, bool keep)>
Value cut_off(Value x, Dims axes, bool keep) {
  return pointwise("truncated", {reduce(x, std::move(axes), keep)}, truncated(scalar::input(0)));
}

constexpr ReductionRule kSumRule{[](Value x, Dims axes, bool keep) { return sum(x, axes, keep); }, 0,
                                 [](double a, double b) { return a + b; }, false, 13};
constexpr ReductionRule kMeanRule{[](Value x, Dims axes, bool keep) { return mean(x, axes, keep); },
                                  std::numeric_limits<double>::quiet_NaN(),
                                  [](double a, double b) { return a + b; },
                                  true,
                                  18,
                                  whole_mean};
constexpr ReductionRule kMaxRule{[](Value x, Dims axes, bool keep) { return reduce_max(x, axes, keep); }, -kInfinite,
                                 [](double a, double b) { return std::max(a, b); }};
constexpr ReductionRule kMinRule{[](Value x, Dims axes, bool keep) { return reduce_min(x, axes, keep); }, kInfinite,
                                 [](double a, double b) { return std::min(a, b); }};
constexpr ReductionRule kProductRule{[](Value x, Dims axes, bool keep) { return prod(x, axes, keep); }, 1,
                                     [](double a, double b) { return a * b; }};
constexpr ReductionRule kL1Rule{.reduce = [](Value x, Dims axes, bool keep) { return sum(abs(x), axes, keep); },
                                .alone = scalar::abs};
constexpr ReductionRule kL2Rule{.reduce = [](Value x, Dims axes, bool keep) { return norm(x, axes, keep); },
                                .whole = whole_norm,
                                .alone = scalar::abs};
constexpr ReductionRule kSumSquareRule{
    .reduce = [](Value x, Dims axes, bool keep) { return sum(square(x), axes, keep); },
    .alone = [](const Scalar& x) { return x * x; }};
constexpr ReductionRule kLogSumRule{
    .reduce = log_sum, .empty = -kInfinite, .whole = cut_off<log_sum>, .alone = scalar::log};
constexpr ReductionRule kLogSumExpRule{.reduce = log_sum_exp, .empty = -kInfinite, .whole = cut_off<log_sum_exp>};

// The least and the greatest number of a type that is not floating.
std::pair<std::int64_t, std::int64_t> limits_of(ElementType type) {
  const auto limits = [](auto number) -> std::pair<std::int64_t, std::int64_t> {
    using Limits = std::numeric_limits<decltype(number)>;
    return {Limits::min(), Limits::max()};
  };
  switch (type) {
    case ElementType::boolean: return {0, 1};
    case ElementType::i8: return limits(std::int8_t{});
    case ElementType::u8: return limits(std::uint8_t{});
    case ElementType::i16: return limits(std::int16_t{});
    case ElementType::u16: return limits(std::uint16_t{});
    case ElementType::i32: return limits(std::int32_t{});
    case ElementType::u32: return limits(std::uint32_t{});
    case ElementType::u64: return {0, INT64_MAX};  // numbers beyond are not known
    default: return limits(std::int64_t{});
  }
}

Dims reduced_dims(const Dims& dims, const Dims& axes, bool keep) {
  Dims reduced;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool is_gone = std::ranges::count(axes, static_cast<std::int64_t>(i)) > 0;
    if (keep || !is_gone) reduced.push_back(is_gone ? 1 : dims[i]);
  }
  return reduced;
}

HostTensor reduced_nothing(ElementType type, Dims dims, double empty) {
  HostTensor result(type, std::move(dims));
  for (std::size_t i = 0; i < static_cast<std::size_t>(result.elements()); ++i) {
    if (!result.floating() && std::isinf(empty)) {
      const auto [least, greatest] = limits_of(type);
      result.set(i, empty < 0 ? least : greatest);
    } else {
      result.set(i, empty);
    }
  }
  return result;
}

HostTensor reduced_on_host(const HostTensor& source, const Dims& axes, bool keep, const ReductionRule& rule) {
  const Dims kept = reduced_dims(source.dims, axes, true);
  const std::int64_t count = source.elements() / elements_of(kept);
  HostTensor result(source.type, kept);
  std::vector<bool> begun(static_cast<std::size_t>(result.elements()), false);
  const Dims strides = strides_of(kept);
  std::size_t next = 0;
  each_position(source.dims, [&](const Dims& position) {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < position.size(); ++i) place += kept[i] == 1 ? 0 : position[i] * strides[i];
    const auto at = static_cast<std::size_t>(place);
    const double value = source.number(next++);
    result.set(at, begun[at] ? rule.join(result.number(at), value) : value);
    begun[at] = true;
  });
  for (std::size_t i = 0; rule.is_mean && i < begun.size(); ++i)
    result.set(i, result.number(i) / static_cast<double>(count));
  return result.reshaped(reduced_dims(source.dims, axes, keep));
}

// Without an axis what a rule does besides the reduction is left.
void reduce_no_axis(Call& call, const ReductionRule& rule) {
  if (rule.alone == nullptr) return call.set(0, call.operand(0));
  const bool is_cut_off = !is_floating(call.type(0)) && rule.whole != nullptr;
  const auto formula = [&](const std::vector<Scalar>& x) {
    return is_cut_off ? truncated(rule.alone(x[0])) : rule.alone(x[0]);
  };
  set_pointwise(call, "reduce_no_axis", {0}, formula, call.type(0));
}

template <const ReductionRule& rule>
void reduction(Call& call) {
  const auto given = axes_of(call, rule.axes_input_since);
  const bool keep = call.integer("keepdims", 1) != 0;
  Dims axes;
  for (const std::int64_t axis : given.value_or(Dims{})) {
    axes.push_back(static_cast<std::int64_t>(axis_of(axis, call.rank(0))));
  }
  if (axes.empty()) {
    if (call.integer("noop_with_empty_axes", 0) != 0) return reduce_no_axis(call, rule);
    for (std::size_t i = 0; i < call.rank(0); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (call.is_empty(0)) {
    return call.set(0, reduced_nothing(call.type(0), reduced_dims(call.dims(0), axes, keep), rule.empty));
  }
  if (call.on_host() && rule.join != nullptr) return call.set(0, reduced_on_host(call.host(0), axes, keep, rule));
  if (axes.empty()) return reduce_no_axis(call, rule);
  const Value x = call.number_value(0);
  const bool is_cut_off = !is_floating(call.type(0)) && rule.whole != nullptr;
  call.set(0, (is_cut_off ? rule.whole : rule.reduce)(x, axes, keep), call.type(0));
}

template <bool largest>
void argument_of_extreme(Call& call) {
  const std::int64_t axis = call.integer("axis", 0);
  const bool keep = call.integer("keepdims", 1) != 0, last = call.integer("select_last_index", 0) != 0;
  Value x = call.number_value(0);
  const std::int64_t size = x.shape()[axis];
  if (last) {
    require_countable(size);
    x = flip(x, {axis});
  }
  Value y = largest ? argmax(x, axis, keep) : argmin(x, axis, keep);
  if (last) y = pointwise("last", {y}, static_cast<float>(size - 1) - scalar::input(0), DType::i32);
  call.set(0, y, ElementType::i64);
}

void cumulative_sum(Call& call) {
  const CumSumOptions options{call.integer("exclusive", 0) != 0, call.integer("reverse", 0) != 0};
  const std::int64_t axis = call.integer(1);
  if (call.on_host()) {
    const HostTensor& source = call.host(0);
    const std::size_t i = axis_of(axis, source.dims.size());
    HostTensor result = source;
    const Dims strides = strides_of(source.dims);
    const std::int64_t size = source.dims[i], stride = strides[i];
    each_position(source.dims, [&](const Dims& position) {
      if (position[i] != 0) return;
      std::int64_t base = 0;
      for (std::size_t k = 0; k < position.size(); ++k) base += position[k] * strides[k];
      double total = 0;
      for (std::int64_t step = 0; step < size; ++step) {
        const std::int64_t at = base + stride * (options.reverse ? size - 1 - step : step);
        const double own = source.number(static_cast<std::size_t>(at));
        if (!options.exclusive) total += own;
        result.set(static_cast<std::size_t>(at), total);
        if (options.exclusive) total += own;
      }
    });
    return call.set(0, std::move(result));
  }
  call.set(0, cumsum(call.number_value(0), axis, options), call.type(0));
}

}  // namespace

void add_reductions(Table& table) {
  table.add("ReduceSum", {.run = reduction<kSumRule>, .host = true});
  table.add("ReduceSum", {.since = 13, .run = reduction<kSumRule>, .known = {1}, .host = true});
  const auto add = [&](const char* name, OperatorFunction run, bool host) {
    table.add(name, {.run = run, .host = host});
    table.add(name, {.since = 18, .run = run, .known = {1}, .host = host});
  };
  add("ReduceMean", reduction<kMeanRule>, true);
  add("ReduceMax", reduction<kMaxRule>, true);
  add("ReduceMin", reduction<kMinRule>, true);
  add("ReduceProd", reduction<kProductRule>, true);
  add("ReduceL1", reduction<kL1Rule>, false);
  add("ReduceL2", reduction<kL2Rule>, false);
  add("ReduceSumSquare", reduction<kSumSquareRule>, false);
  add("ReduceLogSum", reduction<kLogSumRule>, false);
  add("ReduceLogSumExp", reduction<kLogSumExpRule>, false);
  table.add("ArgMax", {.run = argument_of_extreme<true>});
  table.add("ArgMin", {.run = argument_of_extreme<false>});
  table.add("CumSum", {.since = 11, .run = cumulative_sum, .known = {1}, .host = true});
}

}  // namespace concord::onnx
