// Pooling of ONNX. Paddings that differ at the two ends, and those that ceil_mode adds, are made before the operator.
#include <algorithm>
#include <limits>

#include "concord/core/check.hpp"
#include "concord/onnx/operators/indexing.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/operators/views.hpp"
#include "concord/onnx/operators/windows.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::onnx {
namespace {

// What ceil_mode needs behind the last pixel, so that the last window is whole. A window begins before the padding.
Dims ceil_padding(const Call& call, const Windows& windows) {
  Dims added(windows.axes(), 0);
  if (call.integer("ceil_mode", 0) == 0) return added;
  for (std::size_t i = 0; i < windows.axes(); ++i) {
    const std::int64_t size = call.dims(0)[i + 2], stride = windows.stride[i];
    const std::int64_t padded = size + windows.before[i] + windows.after[i];
    std::int64_t count = (std::max<std::int64_t>(padded - windows.extent(i), 0) + stride - 1) / stride + 1;
    if ((count - 1) * stride >= size + windows.before[i]) --count;
    added[i] = std::max<std::int64_t>((count - 1) * stride + windows.extent(i) - padded, 0);
  }
  return added;
}

ops::PoolOptions pool_options(const Windows& windows) {
  return {.rank = windows.axes(),
          .kernel = spatial_numbers(windows.kernel, 1),
          .stride = spatial_numbers(windows.stride, 1),
          .dilation = spatial_numbers(windows.dilation, 1)};
}

// The padding of the operator itself, which is the same at both ends and at most half a window.
bool is_plain(const Windows& windows, const Dims& added) {
  for (std::size_t i = 0; i < windows.axes(); ++i) {
    if (added[i] != 0 || windows.before[i] != windows.after[i] || 2 * windows.before[i] > windows.kernel[i])
      return false;
  }
  return true;
}

// The sums over windows without padding. Those with gaps are a convolution of each channel with ones.
Value window_sums(const Value& x, const Windows& windows) {
  ops::PoolOptions options = pool_options(windows);
  if (std::ranges::count(windows.dilation, 1) == std::ssize(windows.dilation)) {
    options.divisor = 1;
    return avg_pool(x, options);
  }
  Dims images = dims_of(x), ones(images.size(), 1);
  images[0] *= images[1];
  images[1] = 1;
  std::ranges::copy(windows.kernel, ones.begin() + 2);
  const ops::ConvOptions how{windows.axes(), options.stride, {0, 0, 0}, {0, 0, 0}, options.dilation, 1};
  const Value sums =
      x.graph().add(std::make_shared<ops::Conv>(how), {reshape(x, Shape(images)), full(x.graph(), Shape(ones), 1)});
  Dims dims = dims_of(sums);
  dims[0] = x.shape()[0];
  dims[1] = x.shape()[1];
  return reshape(sums, Shape(dims));
}

Value padded_image(const Value& x, const Dims& before, const Dims& after, const Dims& added, float value) {
  Dims front{0, 0}, back{0, 0};
  for (std::size_t i = 0; i < before.size(); ++i) {
    front.push_back(before[i]);
    back.push_back(after[i] + added[i]);
  }
  return pad(x, front, back, value);
}

// The position in the whole tensor of a position in its padded channel. `order` 1 counts columns first.
Value whole_positions(const Value& indices, const Dims& src, const Dims& padded, const Dims& before,
                      std::int64_t order) {
  const std::size_t axes = src.size() - 2;
  require_countable(elements_of({padded.begin() + 2, padded.end()}));
  require_countable(elements_of(src));
  Scalar rest = scalar::input(0), position = 0.0F;
  float stride = 1;
  std::vector<Scalar> places(axes, 0.0F);
  for (std::size_t i = axes; i-- > 0;) {
    const Scalar size = static_cast<float>(padded[i + 2]), next = whole_quotient(rest, size);
    places[i] = rest - next * size - static_cast<float>(before[i]);
    rest = next;
  }
  for (std::size_t i = 0; i < axes; ++i) {
    const std::size_t axis = order == 1 ? i : axes - 1 - i;
    position = position + places[axis] * stride;
    stride *= static_cast<float>(src[axis + 2]);
  }
  const auto channel = static_cast<int>(axes), image = channel + 1;
  position = position + (scalar::coordinate(image) * static_cast<float>(src[1]) + scalar::coordinate(channel)) * stride;
  return pointwise("positions", {indices}, position, DType::i32);
}

void max_pool_of(Call& call) {
  const Windows windows = windows_of(call);
  const Dims added = ceil_padding(call, windows);
  ops::PoolOptions options = pool_options(windows);
  Value x = call.number_value(0);
  Dims before(windows.axes(), 0);
  if (is_plain(windows, added)) {
    options.padding = spatial_numbers(windows.before, 0);
  } else {
    // Integers have no −∞.
    const bool floating = is_floating(call.type(0));
    x = padded_image(x, windows.before, windows.after, added,
                     floating ? -std::numeric_limits<float>::infinity() : -0x1p31F);
    before = windows.before;
  }
  const MaxPooled pooled = max_pool_with_indices(x, options);
  call.set(0, pooled.values, call.type(0));
  if (!call.wants(1)) return;
  call.set(1, whole_positions(pooled.indices, call.dims(0), dims_of(x), before, call.integer("storage_order", 0)),
           ElementType::i64);
}

void average_pool_of(Call& call) {
  const Windows windows = windows_of(call);
  const Dims added = ceil_padding(call, windows);
  ops::PoolOptions options = pool_options(windows);
  const bool counts_padding = call.integer("count_include_pad", 0) != 0;
  options.count_include_pad = counts_padding;
  const Value x = call.number_value(0);
  const bool is_dilated = std::ranges::any_of(windows.dilation, [](std::int64_t d) { return d != 1; });
  if (is_plain(windows, added) && !is_dilated) {
    options.padding = spatial_numbers(windows.before, 0);
    return call.set(0, avg_pool(x, options), call.type(0));
  }
  // Sums, divided by the number of pixels that count.
  const Dims zeros(windows.axes(), 0);
  Dims counted = call.dims(0);
  counted[0] = counted[1] = 1;
  Value ones = full(call.graph(), Shape(counted), 1);
  if (counts_padding) {
    for (std::size_t i = 0; i < windows.axes(); ++i) counted[i + 2] += windows.before[i] + windows.after[i];
    ones = padded_image(full(call.graph(), Shape(counted), 1), zeros, zeros, added, 0);
  } else {
    ones = padded_image(ones, windows.before, windows.after, added, 0);
  }
  const Value sums = window_sums(padded_image(x, windows.before, windows.after, added, 0), windows);
  call.set(0, sums / window_sums(ones, windows), call.type(0));
}

void lp_pool_of(Call& call) {
  const Windows windows = windows_of(call);
  const Dims added = ceil_padding(call, windows);
  const auto p = static_cast<float>(call.opset() < 2 ? call.number("p", 2) : static_cast<float>(call.integer("p", 2)));
  const Value powers = pointwise("power", {call.number_value(0)}, scalar::power(scalar::abs(scalar::input(0)), p));
  const Value sums = window_sums(padded_image(powers, windows.before, windows.after, added, 0), windows);
  call.set(0, pointwise("root", {sums}, scalar::power(scalar::input(0), 1 / p)), call.type(0));
}

template <Value (*function)(Value)>
void global_pool(Call& call) {
  call.set(0, function(call.number_value(0)), call.type(0));
}

void global_lp_pool(Call& call) {
  const auto p = static_cast<float>(call.opset() < 2 ? call.number("p", 2) : static_cast<float>(call.integer("p", 2)));
  const Value powers = pointwise("power", {call.number_value(0)}, scalar::power(scalar::abs(scalar::input(0)), p));
  Dims axes;
  for (std::size_t i = 2; i < call.rank(0); ++i) axes.push_back(static_cast<std::int64_t>(i));
  call.set(0, pointwise("root", {sum(powers, axes, true)}, scalar::power(scalar::input(0), 1 / p)), call.type(0));
}

// Positions are of a tensor of the size that the pool had; a larger result has it in its first corner.
void max_unpool_of(Call& call) {
  const Windows windows = windows_of(call);
  const Dims& src = call.dims(0);
  Dims sizes, dims{src[0], src[1]};
  for (std::size_t i = 0; i < windows.axes(); ++i) {
    sizes.push_back((src[i + 2] - 1) * windows.stride[i] + windows.kernel[i] - windows.before[i] - windows.after[i]);
    dims.push_back(sizes.back());
  }
  require_countable(elements_of(dims));
  const auto plane = static_cast<float>(elements_of(sizes));
  const auto channel = static_cast<int>(windows.axes()), image = channel + 1;
  const Scalar first = (scalar::coordinate(image) * static_cast<float>(src[1]) + scalar::coordinate(channel)) * plane;
  const Value places = pointwise("positions", {call.value(1)}, scalar::input(0) - first, DType::i32);
  Value y = max_unpool(call.number_value(0), places, sizes);
  if (call.has(2)) {
    const Dims wanted = call.integers(2);
    CONCORD_CHECK(wanted.size() == dims.size(), ShapeError, "output_shape has {} sizes", wanted.size());
    Dims after(dims.size(), 0);
    for (std::size_t i = 0; i < dims.size(); ++i) after[i] = wanted[i] - dims[i];
    y = pad(y, Dims(dims.size(), 0), after);
  }
  call.set(0, y, call.type(0));
}

}  // namespace

void add_pools(Table& table) {
  table.add("MaxPool", {.run = max_pool_of});
  table.add("AveragePool", {.run = average_pool_of});
  table.add("LpPool", {.run = lp_pool_of});
  table.add("GlobalAveragePool", {.run = global_pool<global_avg_pool>});
  table.add("GlobalMaxPool", {.run = global_pool<global_max_pool>});
  table.add("GlobalLpPool", {.run = global_lp_pool});
  table.add("MaxUnpool", {.since = 9, .run = max_unpool_of, .known = {2}});
}

}  // namespace concord::onnx
