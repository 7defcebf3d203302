// Conv and ConvTranspose of ONNX.
#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/onnx/operators/views.hpp"
#include "concord/onnx/operators/windows.hpp"
#include "concord/onnx/table.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/rearrange.hpp"

namespace concord::onnx {

Windows windows_of(const Call& call, const Dims& kernel) {
  CONCORD_CHECK(call.rank(0) >= 3, ShapeError, "images (N, C, …) are needed, got {} dimensions", call.rank(0));
  const std::size_t axes = call.rank(0) - 2;
  CONCORD_CHECK(axes <= 3, NotSupported, "{} spatial axes; Concord has at most three", axes);
  const auto numbers = [&](const char* name, std::int64_t otherwise) {
    const Dims given = call.integers(name).value_or(Dims(axes, otherwise));
    CONCORD_CHECK(given.size() == axes, ShapeError, "{} numbers of {} for {} spatial axes", given.size(), name, axes);
    return given;
  };
  Windows windows{kernel.empty() ? call.required_integers("kernel_shape") : kernel, numbers("strides", 1),
                  numbers("dilations", 1), Dims(axes, 0), Dims(axes, 0)};
  CONCORD_CHECK(windows.kernel.size() == axes, ShapeError, "a kernel of {} axes for {} spatial axes",
                windows.kernel.size(), axes);
  for (std::size_t i = 0; i < axes; ++i) {
    CONCORD_CHECK(windows.kernel[i] >= 1 && windows.stride[i] >= 1 && windows.dilation[i] >= 1, ShapeError,
                  "kernel, stride and dilation must be positive");
  }
  const std::string automatic = call.text("auto_pad", "NOTSET");
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    for (std::size_t i = 0; i < axes; ++i) {
      const std::int64_t size = call.dims(0)[i + 2], stride = windows.stride[i];
      const std::int64_t count = (size + stride - 1) / stride;
      const std::int64_t total = std::max<std::int64_t>((count - 1) * stride + windows.extent(i) - size, 0);
      windows.before[i] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      windows.after[i] = total - windows.before[i];
    }
  } else if (automatic == "NOTSET" || automatic.empty()) {
    const Dims pads = call.integers("pads").value_or(Dims(2 * axes, 0));
    CONCORD_CHECK(pads.size() == 2 * axes, ShapeError, "{} pads for {} spatial axes", pads.size(), axes);
    windows.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(axes));
    windows.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(axes), pads.end());
  } else {
    CONCORD_CHECK(automatic == "VALID", NotSupported, "the auto_pad '{}' is unknown", automatic);
  }
  return windows;
}

ops::Spatial spatial_numbers(const Dims& numbers, std::int64_t missing) {
  ops::Spatial all{missing, missing, missing};
  std::copy(numbers.begin(), numbers.end(), all.end() - static_cast<std::ptrdiff_t>(numbers.size()));
  return all;
}

namespace {

Value with_channel_bias(const Call& call, const Value& y) {
  if (!call.has(2)) return y;
  Dims dims(y.shape().rank() - 1, 1);
  dims[0] = y.shape()[1];
  return y + reshape(call.number_value(2), Shape(dims));
}

Dims spatial_part(const Dims& dims) {
  return {dims.begin() + std::min<std::ptrdiff_t>(2, std::ssize(dims)), dims.end()};
}

void conv_of(Call& call) {
  const Windows windows = windows_of(call, spatial_part(call.dims(1)));
  Value x = call.number_value(0);
  Dims before = windows.before, after = windows.after;
  for (std::size_t i = 0; i < windows.axes(); ++i) {  // negative pads cut off
    const std::int64_t front = std::max<std::int64_t>(-before[i], 0), back = std::max<std::int64_t>(-after[i], 0);
    if (front + back > 0) x = sliced_along(x, i + 2, front, x.shape().dims()[i + 2] - front - back);
    before[i] += front;
    after[i] += back;
  }
  Value weights = call.number_value(1);
  // An image of one column is a signal: kernels work along the last axis.
  Dims stride = windows.stride, dilation = windows.dilation;
  const bool is_column =
      windows.axes() == 2 && x.shape()[3] == 1 && windows.kernel[1] == 1 && before[1] == 0 && after[1] == 0;
  if (is_column) {
    for (Dims* const numbers : {&stride, &dilation, &before, &after}) numbers->pop_back();
    x = reshape(x, {x.shape()[0], x.shape()[1], x.shape()[2]});
    weights = reshape(weights, {weights.shape()[0], weights.shape()[1], weights.shape()[2]});
  }
  const ops::ConvOptions options{stride.size(),
                                 spatial_numbers(stride, 1),
                                 spatial_numbers(before, 0),
                                 spatial_numbers(after, 0),
                                 spatial_numbers(dilation, 1),
                                 call.integer("group", 1)};
  const Value y = with_channel_bias(call, call.graph().add(std::make_shared<ops::Conv>(options), {x, weights}));
  call.set(0, is_column ? unsqueeze(y, 3) : y, call.type(0));
}

// The whole of what the pixels reach, then what padding cuts off or output_padding adds.
void conv_transpose_of(Call& call) {
  const Dims& weights = call.dims(1);
  Windows windows = windows_of(call, spatial_part(weights));
  const std::size_t axes = windows.axes();
  const std::int64_t groups = call.integer("group", 1);
  const Dims added = call.integers("output_padding").value_or(Dims(axes, 0));
  CONCORD_CHECK(added.size() == axes && weights.size() >= 2, ShapeError, "output_padding or weights of another rank");
  const std::string automatic = call.text("auto_pad", "NOTSET");
  const auto wanted = call.integers("output_shape");
  Dims full{call.dims(0)[0], weights[1] * groups}, start{0, 0}, count = full;
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t size = call.dims(0)[i + 2];
    full.push_back((size - 1) * windows.stride[i] + windows.extent(i));
    std::int64_t out = full.back() + added[i] - windows.before[i] - windows.after[i];
    const bool is_same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
    if (wanted || is_same) {
      out = wanted ? (*wanted)[wanted->size() - axes + i] : size * windows.stride[i];
      const std::int64_t total = std::max<std::int64_t>(full.back() + added[i] - out, 0);  // a larger one ends in zeros
      windows.before[i] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
    }
    start.push_back(windows.before[i]);
    count.push_back(out);
  }
  const ops::ConvOptions options{axes,      spatial_numbers(windows.stride, 1),   {0, 0, 0},
                                 {0, 0, 0}, spatial_numbers(windows.dilation, 1), groups};
  Value y = call.graph().add(std::make_shared<ops::ConvBackwardData>(options, Shape(full)),
                             {call.number_value(0), call.number_value(1)});
  // Along an axis where the result has none of the whole, that gets zeros as far as the result reaches.
  Dims before(full.size(), 0), after(full.size(), 0), first(full.size(), 0), kept(full.size(), 0);
  for (std::size_t i = 0; i < full.size(); ++i) {
    CONCORD_CHECK(count[i] >= 1, ShapeError, "the paddings leave nothing of axis {}", i);
    if (start[i] < full[i] && start[i] + count[i] > 0) continue;
    before[i] = std::max<std::int64_t>(-start[i], 0);
    after[i] = std::max<std::int64_t>(start[i] + count[i] - full[i], 0);
    full[i] += before[i] + after[i];
    start[i] += before[i];
  }
  if (dims_of(y) != full) y = pad(y, before, after);
  for (std::size_t i = 0; i < full.size(); ++i) {
    before[i] = std::max<std::int64_t>(-start[i], 0);
    first[i] = std::max<std::int64_t>(start[i], 0);
    const std::int64_t end = std::min(full[i], start[i] + count[i]);
    kept[i] = end - first[i];
    after[i] = count[i] - before[i] - kept[i];
  }
  y = sliced(y, first, Dims(full.size(), 1), kept);
  if (dims_of(y) != count) y = pad(y, before, after);
  call.set(0, with_channel_bias(call, y), call.type(0));
}

}  // namespace

void add_convolutions(Table& table) {
  table.add("Conv", {.run = conv_of});
  table.add("ConvTranspose", {.run = conv_transpose_of});
}

}  // namespace concord::onnx
