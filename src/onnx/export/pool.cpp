// Pooling and its gradients. ceil_mode becomes padding at the end, which every runtime reads alike. Windows that an
// adaptive pooling makes of different sizes become matrices (means) or slices (maxima).
#include "concord/ops/pool.hpp"

#include <algorithm>
#include <numeric>

#include "concord/onnx/export/rules.hpp"

namespace concord::onnx {
namespace {

using Numbers = std::vector<std::int64_t>;

/// A pooling with a fixed window along the spatial axes.
struct Windows {
  std::size_t rank;
  Numbers src, dst, kernel, stride, before, after, dilation;  // after: up to the end of the last window
  std::vector<bool> overhangs;                                // the last window ends behind the padding

  Windows(const ops::PoolOptions& o, const Shape& from, const Shape& to) : rank(o.rank) {
    for (std::size_t i = 3 - rank; i < 3; ++i) {
      const auto axis = static_cast<std::int64_t>(i + rank) - 1;
      src.push_back(from[axis]);
      dst.push_back(to[axis]);
      kernel.push_back(o.kernel[i]);
      stride.push_back(o.stride[i]);
      dilation.push_back(o.dilation[i]);
      before.push_back(o.padding[i]);
      const std::int64_t end = (dst.back() - 1) * o.stride[i] + o.dilation[i] * (o.kernel[i] - 1) + 1;
      after.push_back(std::max<std::int64_t>(end - src.back() - o.padding[i], 0));
      overhangs.push_back(after.back() > o.padding[i]);
    }
  }
  [[nodiscard]] bool is_padded() const {
    const auto is_some = [](std::int64_t size) { return size != 0; };
    return std::ranges::any_of(before, is_some) || std::ranges::any_of(after, is_some);
  }
  [[nodiscard]] bool has_overhang() const { return std::ranges::find(overhangs, true) != overhangs.end(); }
  [[nodiscard]] bool is_global() const {
    return kernel == src && !is_padded() && std::ranges::all_of(dst, [](std::int64_t size) { return size == 1; }) &&
           std::ranges::all_of(dilation, [](std::int64_t d) { return d == 1; });
  }
  [[nodiscard]] Numbers pads() const {
    Numbers all = before;
    all.insert(all.end(), after.begin(), after.end());
    return all;
  }
  [[nodiscard]] std::int64_t elements() const {
    return std::accumulate(kernel.begin(), kernel.end(), std::int64_t{1}, std::multiplies<>());
  }
};

/// [first, last) of window j of an adaptive pooling.
std::pair<std::int64_t, std::int64_t> part_of(std::int64_t j, std::int64_t src, std::int64_t dst) {
  return {j * src / dst, ((j + 1) * src + dst - 1) / dst};
}

/// 1 divided by what a window's sum is divided by, for each window along one axis, if they divide by pixels.
std::vector<float> shares_of(const Windows& w, std::size_t i, bool counts_padding) {
  std::vector<float> shares;
  for (std::int64_t j = 0; j < w.dst[i]; ++j) {
    const std::int64_t first = j * w.stride[i] - w.before[i];
    // As in PyTorch, padding counts up to its own end, not up to that of ceil_mode.
    const std::int64_t end = std::min(first + w.kernel[i], w.src[i] + w.before[i]);
    const std::int64_t pixels =
        counts_padding ? end - first : std::min(end, w.src[i]) - std::max<std::int64_t>(first, 0);
    shares.push_back(1.0F / static_cast<float>(pixels));
  }
  return shares;
}

/// Shares of all windows, (dst…), as a tensor (1, 1, dst…).
std::string shares(NodeExport& x, const Windows& w, const ops::PoolOptions& o) {
  if (o.divisor != 0) return x.writer().number(1.0F / static_cast<float>(o.divisor));
  std::vector<float> all{1.0F};
  Numbers dims{1, 1};
  for (std::size_t i = 0; i < w.rank; ++i) {
    std::vector<float> next;
    for (const float outer : all) {
      for (const float inner : shares_of(w, i, o.count_include_pad)) next.push_back(outer * inner);
    }
    all = std::move(next);
    dims.push_back(w.dst[i]);
  }
  return x.writer().tensor(Shape(dims), all);
}

void write_max_pool(NodeExport& x) {
  const Shape &src = x.node().inputs[0].shape(), &dst = x.node().outputs[0].shape;
  const ops::PoolOptions o = ops::pool_sizes(src, x.op<ops::MaxPool>().options()).options;
  if (o.is_adaptive()) {
    if (x.is_used(1)) NodeExport::refuse("ONNX has no positions of maxima in windows of different sizes");
    std::string name = x.in(0);
    for (std::size_t i = 0; i < o.rank; ++i) {
      const auto axis = static_cast<std::int64_t>(i) + 2;
      Names parts;
      for (std::int64_t j = 0; j < dst[axis]; ++j) {
        const auto [first, last] = part_of(j, src[axis], dst[axis]);
        parts.push_back(x.reduce("ReduceMax", x.slice(name, axis, first, last), {axis}));
      }
      name = x.concat(std::move(parts), axis);
    }
    x.bind(0, name);
    return;
  }
  const Windows w(o, src, dst);
  if (w.is_global() && !x.is_used(1)) {
    x.bind(0, x.add("GlobalMaxPool", {x.in(0)}));
    return;
  }
  const Names results = x.add_many("MaxPool", {x.in(0)},
                                   {wholes("kernel_shape", w.kernel), wholes("strides", w.stride),
                                    wholes("pads", w.pads()), wholes("dilations", w.dilation)},
                                   x.is_used(1) ? 2 : 1);
  if (x.is_used(1)) {  // positions in the whole tensor → positions in the channel
    const std::int64_t plane = std::accumulate(w.src.begin(), w.src.end(), std::int64_t{1}, std::multiplies<>());
    x.bind(1, x.cast(x.add("Mod", {results[1], x.writer().integer(plane)}), ElementType::i32));
  }
  x.bind(0, results[0]);
}

/// A product with a matrix along each spatial axis: means of an adaptive pooling, or with `backward` their gradient.
void write_adaptive_mean(NodeExport& x, const ops::PoolOptions& o, const Shape& src, const Shape& dst, bool backward) {
  std::string name = x.in(0);
  for (std::size_t i = 0; i < o.rank; ++i) {
    const auto axis = static_cast<std::int64_t>(i) + 2;
    const std::int64_t rows = src[axis], columns = dst[axis];
    std::vector<float> matrix(static_cast<std::size_t>(rows * columns), 0.0F);
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto [first, last] = part_of(j, rows, columns);
      for (std::int64_t p = first; p < last; ++p) {
        const std::int64_t at = backward ? j * rows + p : p * columns + j;
        matrix[static_cast<std::size_t>(at)] = o.divisor != 0 ? 1.0F : 1.0F / static_cast<float>(last - first);
      }
    }
    const Shape shape = backward ? Shape{columns, rows} : Shape{rows, columns};
    Numbers order(o.rank + 2);
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[i + 2], order.back());
    name = x.transpose(x.add("MatMul", {x.transpose(name, order), x.writer().tensor(shape, matrix)}), order);
  }
  if (o.divisor != 0) name = x.multiply(name, 1.0F / static_cast<float>(o.divisor));
  x.bind(0, name);
}

void write_avg_pool(NodeExport& x) {
  const Shape &src = x.node().inputs[0].shape(), &dst = x.node().outputs[0].shape;
  const ops::PoolOptions o = ops::pool_sizes(src, x.op<ops::AvgPool>().options()).options;
  if (o.is_adaptive()) return write_adaptive_mean(x, o, src, dst, false);
  const Windows w(o, src, dst);
  if (w.is_global() && o.divisor == 0) {
    x.bind(0, x.add("GlobalAveragePool", {x.in(0)}));
    return;
  }
  const bool counts = o.count_include_pad || o.divisor != 0;
  const auto mean = [&](bool counts_padding) {
    return x.add("AveragePool", {x.in(0)},
                 {wholes("kernel_shape", w.kernel), wholes("strides", w.stride), wholes("pads", w.pads()),
                  whole("count_include_pad", counts_padding ? 1 : 0)});
  };
  if (o.divisor == 0 && !(counts && w.has_overhang())) {
    x.bind(0, mean(counts));
    return;
  }
  // The sums, then the divisors of the windows.
  const std::string sums = x.multiply(mean(true), static_cast<float>(w.elements()));
  x.bind(0, x.multiply(sums, shares(x, w, o)));
}

/// diff_dst → diff_src: each gradient, divided as its window, goes to all pixels of the window: a transposed
/// convolution of each channel with ones.
void write_avg_pool_backward(NodeExport& x) {
  const auto& op = x.op<ops::AvgPoolBackward>();
  const Shape &dst = x.node().inputs[0].shape(), &src = op.src();
  const ops::PoolOptions o = ops::pool_sizes(src, op.options()).options;
  if (o.is_adaptive()) return write_adaptive_mean(x, o, src, dst, true);
  const Windows w(o, src, dst);
  Numbers kernel{src[1], 1}, more;
  kernel.insert(kernel.end(), w.kernel.begin(), w.kernel.end());
  for (std::size_t i = 0; i < w.rank; ++i) {
    more.push_back(w.src[i] - ((w.dst[i] - 1) * w.stride[i] + w.kernel[i] - w.before[i] - w.after[i]));
    if (more.back() >= w.stride[i]) NodeExport::refuse("pixels at the end are in no window");
  }
  const Shape shape(kernel);
  const std::vector<float> ones(static_cast<std::size_t>(shape.elements()), 1.0F);
  x.bind(0, x.add("ConvTranspose", {x.multiply(x.in(0), shares(x, w, o)), x.writer().tensor(shape, ones)},
                  {wholes("kernel_shape", w.kernel), wholes("strides", w.stride), wholes("pads", w.pads()),
                   wholes("output_padding", more), whole("group", src[1])}));
}

/// (N, C, …) as (N, C, plane).
Sizes planes(const Sizes& sizes) {
  std::int64_t plane = 1;
  for (std::size_t i = 2; i < sizes.size(); ++i) plane *= sizes[i].number;
  return {sizes[0], sizes[1], {plane, false}};
}

/// values, indices → zeros of the output's size with the values added at their positions in their channels.
void write_add_at(NodeExport& x, const char* reduction) {
  if (x.opset() < 16) NodeExport::refuse("adding at indices needs opset 16");
  const Sizes from = planes(x.in_sizes(0)), to = planes(x.out_sizes());
  const std::string indices = x.reshape(x.cast(x.in(1), ElementType::i64), x.in_sizes(1), from);
  const std::string result =
      x.add("ScatterElements", {x.filled(to, 0), indices, x.reshape(x.in(0), x.in_sizes(0), from)},
            {whole("axis", 2), text("reduction", reduction)});
  x.bind(0, x.reshape(result, to, x.out_sizes()));
}

/// values, indices → the values at the positions.
void write_take_at(NodeExport& x) {
  const Sizes from = planes(x.in_sizes(0)), to = planes(x.out_sizes());
  const std::string indices = x.reshape(x.cast(x.in(1), ElementType::i64), x.in_sizes(1), to);
  const std::string taken =
      x.add("GatherElements", {x.reshape(x.in(0), x.in_sizes(0), from), indices}, {whole("axis", 2)});
  x.bind(0, x.reshape(taken, to, x.out_sizes()));
}

}  // namespace

void add_pool_rules(Rules& rules) {
  rules[typeid(ops::MaxPool)] = write_max_pool;
  rules[typeid(ops::AvgPool)] = write_avg_pool;
  rules[typeid(ops::AvgPoolBackward)] = write_avg_pool_backward;
  rules[typeid(ops::MaxPoolBackward)] = [](NodeExport& x) { write_add_at(x, "add"); };
  rules[typeid(ops::MaxUnpool)] = [](NodeExport& x) { write_add_at(x, "none"); };
  rules[typeid(ops::MaxUnpoolBackward)] = write_take_at;
}

}  // namespace concord::onnx
