// Pooling and its gradients: loops over images of (slices, rows, columns, lanes). Channels-last images have their
// channels as lanes; row-major ones are N·C images of one lane.
#include "concord/ops/pool.hpp"

#include "bf16_simd.hpp"
#include "concord/core/check.hpp"
#include "kernels.hpp"
#include "pool_simd.hpp"

namespace concord::cpu {
namespace {

/// The images of a pooling, and how they are stored.
struct Prepared {
  PoolImages images;
  bool last = false;
  DType stored = DType::f32;  // of floats
  int threads = 1;
  [[nodiscard]] Layout layout(const TensorSpec& spec) const {
    const DType type = spec.dtype == DType::f32 ? stored : spec.dtype;
    return last ? channels_last(spec, type) : row_major(spec, type);
  }
  [[nodiscard]] std::string name(const char* family) const { return last ? std::string(family) + " nhwc" : family; }
};

/// Images in the stored type of `spec` in `layout`.
Prepared images_of(const ops::PoolSizes& s, bool last, const TensorSpec& spec, const Layout& layout, int threads) {
  const auto& o = s.options;
  Prepared prepared{.images = {.images = last ? s.n : s.n * s.c,
                               .lanes = last ? s.c : 1,
                               .axes = {},
                               .count_padding = o.count_include_pad,
                               .divisor = o.divisor},
                    .last = last,
                    .stored = stored_type(spec, layout),
                    .threads = threads};
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

/// A kernel that calls pool(operands, image, from, to) with the image's first element of input 0, of `from` elements,
/// and of output 0, of `to`. Images are spread over threads; within one, windows are in order, so that sums have a
/// fixed order. An image in bf16 is a copy in fp32 meanwhile.
template <class Pool>
std::unique_ptr<Kernel> over_images(const Prepared& p, const char* family, std::int64_t from, std::int64_t to,
                                    const Pool& pool) {
  const std::int64_t images = p.images.images;
  const bool parallel = images * std::max(from, to) >= kParallelElements;
  if (p.stored != DType::bf16) {
    return loop_kernel(p.name(family), 0, [=, threads = p.threads](const Pointers& pointers) {
      parallel_for(images, threads, parallel, [&](std::int64_t image) {
        pool(pointers, image, pointers.input<float>(0) + image * from, pointers.output<float>(0) + image * to);
      });
    });
  }
  const std::int64_t copies = from + to;
  const auto workspace = static_cast<std::size_t>(p.threads * copies) * sizeof(float);
  return loop_kernel(p.name(family), workspace, [=, threads = p.threads](const Pointers& pointers) {
    parallel_parts(images, threads, parallel, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
      float* const src = pointers.workspace<float>() + part * copies;
      float* const dst = src + from;
      for (std::int64_t image = begin; image < end; ++image) {
        bf16_load(pointers.input<Bf16>(0) + image * from, src, from);
        pool(pointers, image, src, dst);
        bf16_store(dst, pointers.output<Bf16>(0) + image * to, to);
      }
    });
  });
}

PreparedKernel prepare_max_pool(Backend& backend, const ops::MaxPool& op, const KernelRequest& request) {
  const TensorSpec& src = request.inputs[0];
  const Layout& layout = request.input_layouts[0];
  const Prepared p =
      images_of(ops::pool_sizes(src.shape, op.options()), is_channels_last(src, layout), src, layout, backend.threads);
  const std::int64_t from = p.images.src_elements(), to = p.images.dst_elements();
  return {
      .kernel = over_images(
          p, "max_pool", from, to,
          [s = p.images, to](const Pointers& pointers, std::int64_t image, const float* src_image, float* dst_image) {
            pool_max_forward(s, src_image, dst_image, pointers.output<std::int32_t>(1) + image * to);
          }),
      .input_layouts = {p.layout(src)},
      .output_layouts = {p.layout(request.outputs[0]), p.layout(request.outputs[1])}};
}

PreparedKernel prepare_max_pool_backward(Backend& backend, const ops::MaxPoolBackward& op,
                                         const KernelRequest& request) {
  const TensorSpec& diff_dst = request.inputs[0];
  const bool last = prefers_last(request.inputs[1], request.input_layouts[1]);
  const Prepared p =
      images_of(ops::pool_sizes(op.src(), op.options()), last, diff_dst, request.input_layouts[0], backend.threads);
  const std::int64_t from = p.images.dst_elements(), to = p.images.src_elements();
  return {.kernel = over_images(
              p, "max_pool_backward", from, to,
              [s = p.images, from](const Pointers& pointers, std::int64_t image, const float* diff, float* diff_src) {
                pool_max_backward(s, diff, pointers.input<std::int32_t>(1) + image * from, diff_src);
              }),
          .input_layouts = {p.layout(diff_dst), p.layout(request.inputs[1])},
          .output_layouts = {p.layout(request.outputs[0])}};
}

PreparedKernel prepare_avg_pool(Backend& backend, const ops::AvgPool& op, const KernelRequest& request) {
  const TensorSpec& src = request.inputs[0];
  const Layout& layout = request.input_layouts[0];
  const Prepared p =
      images_of(ops::pool_sizes(src.shape, op.options()), is_channels_last(src, layout), src, layout, backend.threads);
  return {.kernel = over_images(p, "avg_pool", p.images.src_elements(), p.images.dst_elements(),
                                [s = p.images](const Pointers&, std::int64_t, const float* src_image,
                                               float* dst_image) { pool_avg_forward(s, src_image, dst_image); }),
          .input_layouts = {p.layout(src)},
          .output_layouts = {p.layout(request.outputs[0])}};
}

PreparedKernel prepare_avg_pool_backward(Backend& backend, const ops::AvgPoolBackward& op,
                                         const KernelRequest& request) {
  const TensorSpec& diff_dst = request.inputs[0];
  const Layout& layout = request.input_layouts[0];
  const Prepared p = images_of(ops::pool_sizes(op.src(), op.options()), prefers_last(diff_dst, layout), diff_dst,
                               layout, backend.threads);
  return {.kernel = over_images(p, "avg_pool_backward", p.images.dst_elements(), p.images.src_elements(),
                                [s = p.images](const Pointers&, std::int64_t, const float* diff, float* diff_src) {
                                  pool_avg_backward(s, diff, diff_src);
                                }),
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
