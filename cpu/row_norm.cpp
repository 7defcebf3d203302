// Normalisation of rows and its gradient: threads own rows.
#include "concord/ops/row_norm.hpp"

#include "kernels.hpp"
#include "row_norm_simd.hpp"

namespace concord::cpu {
namespace {

/// The type that tensor `i` comes in, which the others of its size and the result get too.
DType type_of_rows(const KernelRequest& request, std::size_t i) {
  return is_row_major(request.input_layouts[i]) ? stored_type(request.inputs[i], request.input_layouts[i]) : DType::f32;
}

PreparedKernel in_type(const KernelRequest& request, DType stored, std::size_t tensors, std::string name, Loop loop) {
  PreparedKernel prepared = all_plain(request, loop_kernel(std::move(name), 0, std::move(loop)));
  for (std::size_t i = 0; i < tensors; ++i) prepared.input_layouts[i] = row_major(request.inputs[i], stored);
  prepared.output_layouts[0] = row_major(request.outputs[0], stored);
  return prepared;
}

PreparedKernel prepare_row_norm(Backend& backend, const ops::RowNorm& op, const KernelRequest& request) {
  const ops::RowSizes sizes = ops::row_sizes(request.inputs[0].shape, op.axis());
  const bool centred = op.centred();
  const auto loop = [sizes, centred, epsilon = op.epsilon(), threads = backend.threads](auto number,
                                                                                        const Pointers& pointers) {
    using Stored = decltype(number);
    parallel_for(sizes.rows, threads, sizes.rows * sizes.length >= kParallelElements, [&](std::int64_t row) {
      const std::int64_t begin = row * sizes.length;
      float mean = 0;
      row_norm_forward(pointers.input<Stored>(0) + begin, sizes.length, centred, epsilon,
                       pointers.output<Stored>(0) + begin, &mean, pointers.output<float>(1) + row);
      if (centred) pointers.output<float>(2)[row] = mean;
    });
  };
  const DType stored = type_of_rows(request, 0);
  return in_type(request, stored, 1, "row_norm rows", in_stored_type(stored, loop));
}

PreparedKernel prepare_row_norm_backward(Backend& backend, const ops::RowNormBackward& op,
                                         const KernelRequest& request) {
  const ops::RowSizes sizes = ops::row_sizes(request.outputs[0].shape, op.axis());
  const auto loop = [sizes, centred = op.centred(), threads = backend.threads](auto number, const Pointers& pointers) {
    using Stored = decltype(number);
    parallel_for(sizes.rows, threads, sizes.rows * sizes.length >= kParallelElements, [&](std::int64_t row) {
      const std::int64_t begin = row * sizes.length;
      row_norm_backward(pointers.input<Stored>(0) + begin, pointers.input<Stored>(1) + begin, sizes.length, centred,
                        pointers.input<float>(2)[row], pointers.output<Stored>(0) + begin);
    });
  };
  const DType stored = type_of_rows(request, 1);
  return in_type(request, stored, 2, "row_norm_backward rows", in_stored_type(stored, loop));
}

}  // namespace

void add_row_norm(Kernels& kernels) {
  kernels.add<ops::RowNorm, prepare_row_norm>();
  kernels.add<ops::RowNormBackward, prepare_row_norm_backward>();
}

}  // namespace concord::cpu
