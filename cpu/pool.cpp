// Pooling and its gradients: loops over images of (rows, columns, lanes). Channels-last images have their channels as
// lanes; row-major ones are N·C images of one lane.
#include "concord/ops/pool.hpp"

#include "families.hpp"
#include "pool_rows.hpp"

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
                     .h = s.h,
                     .w = s.w,
                     .oh = s.oh,
                     .ow = s.ow,
                     .kh = o.kernel[0],
                     .kw = o.kernel[1],
                     .sh = o.stride[0],
                     .sw = o.stride[1],
                     .ph = o.padding[0],
                     .pw = o.padding[1],
                     .count_padding = o.count_include_pad},
                    last};
  return prepared;
}

// A pooled image of one pixel is row-major and channels-last at once; its gradient goes to a convolution.
bool prefers_last(const TensorSpec& pooled, const Layout& layout) {
  return is_channels_last(pooled, layout) || !channels_last(pooled);
}

// Images spread over threads; within one, windows in order, so that sums have a fixed order.
template <class Function>
void for_each_image(const PoolImages& s, int threads, const Function& function) {
  const std::int64_t work = s.images * s.lanes * std::max(s.h * s.w, s.oh * s.ow);
  parallel_for(s.images, threads, work >= kParallelElements, function);
}

}  // namespace

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

}  // namespace concord::cpu
