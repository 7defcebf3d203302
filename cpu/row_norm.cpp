// Normalisation of rows and its gradient: threads own rows.
#include "concord/ops/row_norm.hpp"

#include "kernels.hpp"
#include "row_norm_simd.hpp"

namespace concord::cpu {
namespace {

PreparedKernel prepare_row_norm(Backend& backend, const ops::RowNorm& op, const KernelRequest& request) {
  const ops::RowSizes sizes = ops::row_sizes(request.inputs[0].shape, op.axis());
  const bool centred = op.centred();
  const auto loop = [sizes, centred, epsilon = op.epsilon(), threads = backend.threads](const Pointers& pointers) {
    parallel_for(sizes.rows, threads, sizes.rows * sizes.length >= kParallelElements, [&](std::int64_t row) {
      const std::int64_t begin = row * sizes.length;
      float mean = 0;
      row_norm_forward(pointers.input<float>(0) + begin, sizes.length, centred, epsilon,
                       pointers.output<float>(0) + begin, &mean, pointers.output<float>(1) + row);
      if (centred) pointers.output<float>(2)[row] = mean;
    });
  };
  return all_plain(request, loop_kernel("row_norm rows", 0, loop));
}

PreparedKernel prepare_row_norm_backward(Backend& backend, const ops::RowNormBackward& op,
                                         const KernelRequest& request) {
  const ops::RowSizes sizes = ops::row_sizes(request.outputs[0].shape, op.axis());
  const auto loop = [sizes, centred = op.centred(), threads = backend.threads](const Pointers& pointers) {
    parallel_for(sizes.rows, threads, sizes.rows * sizes.length >= kParallelElements, [&](std::int64_t row) {
      const std::int64_t begin = row * sizes.length;
      row_norm_backward(pointers.input<float>(0) + begin, pointers.input<float>(1) + begin, sizes.length, centred,
                        pointers.input<float>(2)[row], pointers.output<float>(0) + begin);
    });
  };
  return all_plain(request, loop_kernel("row_norm_backward rows", 0, loop));
}

}  // namespace

void add_row_norm(Kernels& kernels) {
  kernels.add<ops::RowNorm, prepare_row_norm>();
  kernels.add<ops::RowNormBackward, prepare_row_norm_backward>();
}

}  // namespace concord::cpu
