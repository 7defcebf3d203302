// Matmul: one oneDNN product; transposed operands are strides, an epilogue is bias and post-operations.
#include "concord/ops/matmul.hpp"

#include "epilogue.hpp"
#include "families.hpp"

namespace concord::cpu {
namespace {

// A batch of matrices, stored row-major or, when `transposed`, as the transposes of its rows and columns.
Desc matrices(std::int64_t batch, std::int64_t rows, std::int64_t columns, bool transposed) {
  if (!transposed) return plain_desc(DType::f32, {batch, rows, columns});
  return {{batch, rows, columns}, dnnl::memory::data_type::f32, {rows * columns, 1, rows}};
}

}  // namespace

PreparedKernel prepare_matmul_with(const ops::Matmul& op, const Epilogue& epilogue, const KernelRequest& request) {
  ops::MatmulSizes s = ops::sizes_of(op, request.inputs[0].shape, request.inputs[1].shape);
  // One weights matrix for the whole batch: the batch is more rows.
  if (s.batch_b == 1 && !op.transpose_a() && s.batch > 1) {
    s.m *= s.batch;
    s.batch = s.batch_a = 1;
  }
  const Desc src = matrices(s.batch_a, s.m, s.k, op.transpose_a());
  const Desc weights = matrices(s.batch_b, s.k, s.n, op.transpose_b());
  const Desc dst = matrices(s.batch, s.m, s.n, false);
  return guarded(request.op->name(), [&] {
    std::vector<PrimitiveArgument> arguments{input_argument(DNNL_ARG_SRC, 0, src),
                                             input_argument(DNNL_ARG_WEIGHTS, 1, weights),
                                             output_argument(DNNL_ARG_DST, 0, dst)};
    Desc bias;
    if (epilogue.bias >= 0) {
      bias = plain_desc(DType::f32, {1, 1, s.n});
      arguments.push_back(input_argument(DNNL_ARG_BIAS, static_cast<std::size_t>(epilogue.bias), bias));
    }
    const auto post_ops = post_ops_of(
        epilogue,
        [&](std::size_t operand) {
          // An operand of the output's size, or one value a column.
          const bool full = request.inputs[operand].shape.elements() == s.batch * s.m * s.n;
          return full ? dst : plain_desc(DType::f32, {1, 1, s.n});
        },
        arguments);
    const auto desc = matmul_product(src, weights, bias, dst, attributes(post_ops, request.precision));
    return all_plain(request, primitive_kernel(dnnl::matmul(desc), desc, std::move(arguments)));
  });
}

PreparedKernel prepare_matmul(Backend&, const ops::Matmul& op, const KernelRequest& request) {
  return prepare_matmul_with(op, {}, request);
}

}  // namespace concord::cpu
