// Reductions of ONNX: sums, means, extremes, products and norms over axes, their arguments, and running sums.
#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/operators/views.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/rearrange.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/scan.hpp"

namespace concord::onnx {
namespace {

struct ReductionRule {
  Value (*reduce)(Value x, Dims axes, bool keep);
  // On the host, for the forms that shapes need; null for others.
  double (*join)(double a, double b) = nullptr;
  bool is_mean = false;
  std::int64_t axes_input_since = 18;
};

Value log_sum_exp(Value x, Dims axes, bool keep) {
  const Value largest = reduce_max(x, axes, true);
  const Value shifted = pointwise("shifted_exp", {x, largest}, scalar::exp(scalar::input(0) - scalar::input(1)));
  const Value total = sum(shifted, axes, true);
  const Value y = pointwise("log_sum_exp", {total, largest}, scalar::log(scalar::input(0)) + scalar::input(1));
  if (keep) return y;
  return reshape(y, sum(x, axes, false).shape());
}

constexpr ReductionRule kSumRule{[](Value x, Dims axes, bool keep) { return sum(x, axes, keep); },
                                 [](double a, double b) { return a + b; }, false, 13};
constexpr ReductionRule kMeanRule{[](Value x, Dims axes, bool keep) { return mean(x, axes, keep); },
                                  [](double a, double b) { return a + b; }, true};
constexpr ReductionRule kMaxRule{[](Value x, Dims axes, bool keep) { return reduce_max(x, axes, keep); },
                                 [](double a, double b) { return std::max(a, b); }};
constexpr ReductionRule kMinRule{[](Value x, Dims axes, bool keep) { return reduce_min(x, axes, keep); },
                                 [](double a, double b) { return std::min(a, b); }};
constexpr ReductionRule kProductRule{[](Value x, Dims axes, bool keep) { return prod(x, axes, keep); },
                                     [](double a, double b) { return a * b; }};
constexpr ReductionRule kL1Rule{[](Value x, Dims axes, bool keep) { return sum(abs(x), axes, keep); }};
constexpr ReductionRule kL2Rule{[](Value x, Dims axes, bool keep) { return norm(x, axes, keep); }};
constexpr ReductionRule kSumSquareRule{[](Value x, Dims axes, bool keep) { return sum(square(x), axes, keep); }};
constexpr ReductionRule kLogSumRule{[](Value x, Dims axes, bool keep) { return log(sum(x, axes, keep)); }};
constexpr ReductionRule kLogSumExpRule{log_sum_exp};

HostTensor reduced_on_host(const HostTensor& source, const Dims& axes, bool keep, const ReductionRule& rule) {
  std::vector<bool> gone(source.dims.size(), false);
  for (const std::int64_t axis : axes) gone[static_cast<std::size_t>(axis)] = true;
  Dims kept = source.dims, dims;
  std::int64_t count = 1;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (gone[i]) count *= std::exchange(kept[i], 1);
    if (keep || !gone[i]) dims.push_back(kept[i]);
  }
  HostTensor result(source.type, kept);
  std::vector<bool> begun(static_cast<std::size_t>(result.elements()), false);
  const Dims strides = strides_of(kept);
  std::size_t next = 0;
  each_position(source.dims, [&](const Dims& position) {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < position.size(); ++i) place += gone[i] ? 0 : position[i] * strides[i];
    const auto at = static_cast<std::size_t>(place);
    const double value = source.number(next++);
    result.set(at, begun[at] ? rule.join(result.number(at), value) : value);
    begun[at] = true;
  });
  for (std::size_t i = 0; rule.is_mean && i < begun.size(); ++i)
    result.set(i, result.number(i) / static_cast<double>(count));
  return result.reshaped(std::move(dims));
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
    if (call.integer("noop_with_empty_axes", 0) != 0) return call.set(0, call.operand(0));
    for (std::size_t i = 0; i < call.rank(0); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (call.on_host() && rule.join != nullptr) return call.set(0, reduced_on_host(call.host(0), axes, keep, rule));
  if (axes.empty()) return call.set(0, call.operand(0));  // a single number
  const Value x = call.number_value(0);
  Value y = rule.reduce(x, axes, keep);
  if (!is_floating(call.type(0))) y = pointwise("rounded", {y}, scalar::floor(scalar::input(0) + 0.5F));
  call.set(0, y, call.type(0));
}

template <bool largest>
void argument_of_extreme(Call& call) {
  const std::int64_t axis = call.integer("axis", 0);
  const bool keep = call.integer("keepdims", 1) != 0, last = call.integer("select_last_index", 0) != 0;
  Value x = call.number_value(0);
  const std::int64_t size = x.shape()[axis];
  if (last) x = flip(x, {axis});
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
