// Pooling and its gradients: loops over images of (slices, rows, columns, lanes). Channels-last images have their
// channels as lanes; row-major ones are N·C images of one lane.
#include "concord/ops/pool.hpp"

#include "concord/core/check.hpp"
#include "kernels.hpp"
#include "pool_simd.hpp"

namespace concord::cpu {
namespace {

struct Prepared {
  PoolImages images;
  bool last = false;
  [[nodiscard]] Layout layout(const TensorSpec& spec) const { return last ? channels_last(spec) : nullptr; }
};

Prepared images_of(const ops::PoolSizes& s, bool last) {
  const auto& o = s.options;
  Prepared prepared{{.images = last ? s.n : s.n * s.c,
                     .lanes = last ? s.c : 1,
                     .axes = {},
                     .count_padding = o.count_include_pad,
                     .divisor = o.divisor},
                    last};
  for (std::size_t i = 0; i < 3; ++i) {
    prepared.images.axes[i] = {s.src[i],     s.dst[i],      o.kernel[i],    o.stride[i],
                               o.padding[i], o.dilation[i], o.is_adaptive()};
  }
  CONCORD_CHECK(prepared.images.src_elements() / prepared.images.lanes < std::int64_t{1} << 31, NotSupported,
                "pool: the pixels of one channel exceed the 2^31 - 1 of its indices");
  return prepared;
}

// A pooled image of one pixel is row-major and channels-last at once; its gradient goes to a convolution.
bool prefers_last(const TensorSpec& pooled, const Layout& layout) {
  return is_channels_last(pooled, layout) || !channels_last(pooled);
}

// Images spread over threads; within one, windows in order, so that sums have a fixed order.
template <class Function>
void for_each_image(const PoolImages& s, int threads, const Function& function) {
  const std::int64_t work = s.images * std::max(s.src_elements(), s.dst_elements());
  parallel_for(s.images, threads, work >= kParallelElements, function);
}

PreparedKernel prepare_max_pool(Backend& backend, const ops::MaxPool& op, const KernelRequest& request) {
  const TensorSpec& src = request.inputs[0];
  const Prepared p =
      images_of(ops::pool_sizes(src.shape, op.options()), is_channels_last(src, request.input_layouts[0]));
  Loop loop = [s = p.images, threads = backend.threads](const Pointers& pointers) {
    for_each_image(s, threads, [&](std::int64_t image) {
      pool_max_forward(s, pointers.input<float>(0) + image * s.src_elements(),
                       pointers.output<float>(0) + image * s.dst_elements(),
                       pointers.output<std::int32_t>(1) + image * s.dst_elements());
    });
  };
  return {.kernel = loop_kernel(p.last ? "max_pool nhwc" : "max_pool", 0, std::move(loop)),
          .input_layouts = {p.layout(src)},
          .output_layouts = {p.layout(request.outputs[0]), p.layout(request.outputs[1])}};
}

PreparedKernel prepare_max_pool_backward(Backend& backend, const ops::MaxPoolBackward& op,
                                         const KernelRequest& request) {
  const TensorSpec& diff_dst = request.inputs[0];
  const bool last = prefers_last(request.inputs[1], request.input_layouts[1]);
  const Prepared p = images_of(ops::pool_sizes(op.src(), op.options()), last);
  Loop loop = [s = p.images, threads = backend.threads](const Pointers& pointers) {
    for_each_image(s, threads, [&](std::int64_t image) {
      pool_max_backward(s, pointers.input<float>(0) + image * s.dst_elements(),
                        pointers.input<std::int32_t>(1) + image * s.dst_elements(),
                        pointers.output<float>(0) + image * s.src_elements());
    });
  };
  return {.kernel = loop_kernel(last ? "max_pool_backward nhwc" : "max_pool_backward", 0, std::move(loop)),
          .input_layouts = {p.layout(diff_dst), p.layout(request.inputs[1])},
          .output_layouts = {p.layout(request.outputs[0])}};
}

PreparedKernel prepare_avg_pool(Backend& backend, const ops::AvgPool& op, const KernelRequest& request) {
  const TensorSpec& src = request.inputs[0];
  const Prepared p =
      images_of(ops::pool_sizes(src.shape, op.options()), is_channels_last(src, request.input_layouts[0]));
  Loop loop = [s = p.images, threads = backend.threads](const Pointers& pointers) {
    for_each_image(s, threads, [&](std::int64_t image) {
      pool_avg_forward(s, pointers.input<float>(0) + image * s.src_elements(),
                       pointers.output<float>(0) + image * s.dst_elements());
    });
  };
  return {.kernel = loop_kernel(p.last ? "avg_pool nhwc" : "avg_pool", 0, std::move(loop)),
          .input_layouts = {p.layout(src)},
          .output_layouts = {p.layout(request.outputs[0])}};
}

PreparedKernel prepare_avg_pool_backward(Backend& backend, const ops::AvgPoolBackward& op,
                                         const KernelRequest& request) {
  const TensorSpec& diff_dst = request.inputs[0];
  const bool last = prefers_last(diff_dst, request.input_layouts[0]);
  const Prepared p = images_of(ops::pool_sizes(op.src(), op.options()), last);
  Loop loop = [s = p.images, threads = backend.threads](const Pointers& pointers) {
    for_each_image(s, threads, [&](std::int64_t image) {
      pool_avg_backward(s, pointers.input<float>(0) + image * s.dst_elements(),
                        pointers.output<float>(0) + image * s.src_elements());
    });
  };
  return {.kernel = loop_kernel(last ? "avg_pool_backward nhwc" : "avg_pool_backward", 0, std::move(loop)),
          .input_layouts = {p.layout(diff_dst)},
          .output_layouts = {p.layout(request.outputs[0])}};
}

PreparedKernel prepare_max_unpool(Backend& backend, const ops::MaxUnpool&, const KernelRequest& request) {
  const Shape &src = request.inputs[0].shape, &dst = request.outputs[0].shape;
  const std::int64_t channels = src[0] * src[1], pooled = src.elements() / channels, pixels = dst.elements() / channels;
  Loop loop = [=, threads = backend.threads](const Pointers& pointers) {
    parallel_for(channels, threads, channels * pixels >= kParallelElements, [&](std::int64_t channel) {
      const float* from = pointers.input<float>(0) + channel * pooled;
      const std::int32_t* place = pointers.input<std::int32_t>(1) + channel * pooled;
      float* to = pointers.output<float>(0) + channel * pixels;
      std::fill_n(to, pixels, 0.0F);
      for (std::int64_t i = 0; i < pooled; ++i) {
        if (place[i] >= 0 && place[i] < pixels) to[place[i]] = from[i];
      }
    });
  };
  return all_plain(request, loop_kernel("max_unpool", 0, std::move(loop)));
}

PreparedKernel prepare_max_unpool_backward(Backend& backend, const ops::MaxUnpoolBackward&,
                                           const KernelRequest& request) {
  const Shape &src = request.inputs[0].shape, &dst = request.outputs[0].shape;
  const std::int64_t channels = src[0] * src[1], pixels = src.elements() / channels, pooled = dst.elements() / channels;
  Loop loop = [=, threads = backend.threads](const Pointers& pointers) {
    parallel_for(channels, threads, channels * pooled >= kParallelElements, [&](std::int64_t channel) {
      const float* from = pointers.input<float>(0) + channel * pixels;
      const std::int32_t* place = pointers.input<std::int32_t>(1) + channel * pooled;
      float* to = pointers.output<float>(0) + channel * pooled;
      for (std::int64_t i = 0; i < pooled; ++i) to[i] = place[i] >= 0 && place[i] < pixels ? from[place[i]] : 0.0F;
    });
  };
  return all_plain(request, loop_kernel("max_unpool_backward", 0, std::move(loop)));
}

}  // namespace

void add_pool(Kernels& kernels) {
  kernels.add<ops::MaxPool, prepare_max_pool>();
  kernels.add<ops::MaxPoolBackward, prepare_max_pool_backward>();
  kernels.add<ops::AvgPool, prepare_avg_pool>();
  kernels.add<ops::AvgPoolBackward, prepare_avg_pool_backward>();
  kernels.add<ops::MaxUnpool, prepare_max_unpool>();
  kernels.add<ops::MaxUnpoolBackward, prepare_max_unpool_backward>();
}

}  // namespace concord::cpu
