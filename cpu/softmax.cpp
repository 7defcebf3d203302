// Softmax and the gradients through oneDNN. Log-softmax is a loop of our own: oneDNN's logarithm is 1.4e-6 off where
// the result is 0.
#include "concord/ops/softmax.hpp"

#include <algorithm>
#include <cmath>

#include "families.hpp"

namespace concord::cpu {
namespace {

// One line of `n` elements, `stride` apart.
void log_softmax_line(const float* src, float* dst, std::int64_t n, std::int64_t stride) {
  float highest = src[0];
  for (std::int64_t i = 1; i < n; ++i) highest = std::max(highest, src[i * stride]);
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += static_cast<double>(std::exp(src[i * stride] - highest));
  const auto log_total = static_cast<float>(std::log(total));
  for (std::int64_t i = 0; i < n; ++i) dst[i * stride] = src[i * stride] - highest - log_total;
}

PreparedKernel prepare_log_softmax(const Backend& backend, const ops::Softmax& op, const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  const std::int64_t n = shape.dims()[op.axis()], stride = shape.strides()[op.axis()], elements = shape.elements();
  return all_plain(request, loop_kernel("log_softmax", 0, [=, threads = backend.threads](const Pointers& pointers) {
                     parallel_for(elements / n, threads, elements >= kParallelElements / 4, [&](std::int64_t line) {
                       const std::int64_t first = line / stride * n * stride + line % stride;
                       log_softmax_line(pointers.input<float>(0) + first, pointers.output<float>(0) + first, n, stride);
                     });
                   }));
}

}  // namespace

PreparedKernel prepare_softmax(Backend& backend, const ops::Softmax& op, const KernelRequest& request) {
  if (op.log()) return prepare_log_softmax(backend, op, request);
  const Desc src = plain_desc(request.inputs[0]);
  return guarded(op.name(), [&] {
    const auto desc = softmax_forward(src, static_cast<int>(op.axis()), false, attributes());
    return all_plain(request,
                     primitive_kernel(SoftmaxForward(desc), desc,
                                      {input_argument(DNNL_ARG_SRC, 0, src), output_argument(DNNL_ARG_DST, 0, src)}));
  });
}

PreparedKernel prepare_softmax_backward(Backend&, const ops::SoftmaxBackward& op, const KernelRequest& request) {
  const Desc dst = plain_desc(request.inputs[0]);
  return guarded(op.name(), [&] {
    const auto desc = softmax_backward(dst, static_cast<int>(op.axis()), op.log(), attributes());
    return all_plain(request,
                     primitive_kernel(SoftmaxBackward(desc), desc,
                                      {input_argument(DNNL_ARG_DIFF_DST, 0, dst), input_argument(DNNL_ARG_DST, 1, dst),
                                       output_argument(DNNL_ARG_DIFF_SRC, 0, dst)}));
  });
}

}  // namespace concord::cpu
