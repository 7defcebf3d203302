// Matmul: one oneDNN product; transposed operands are strides, an epilogue is bias and post-operations. Products of one
// row are loops of our own (row_product.cpp). With bf16 units the factors are bf16, and so is a large result of rows by
// one matrix of weights; other results, gradients of weights among them, are fp32.
#include "concord/ops/matmul.hpp"

#include <algorithm>

#include "epilogue.hpp"
#include "kernels.hpp"
#include "onednn_faults.hpp"

namespace concord::cpu {
namespace {

// From this many rows on, copying the weights into oneDNN's own format is faster.
constexpr std::int64_t kPackedRows = 1024;

// (batch, rows, columns), or (rows, columns) of a single matrix.
Dims matrix_dims(std::int64_t batch, std::int64_t rows, std::int64_t columns, bool is_single) {
  return is_single ? Dims{rows, columns} : Dims{batch, rows, columns};
}

// Matrices stored row-major or, when `transposed`, as the transposes of their rows and columns.
Desc matrices(DType type, const Dims& dims, bool transposed) {
  if (!transposed) return plain_desc(type, dims);
  const std::int64_t rows = dims[dims.size() - 2], columns = dims.back();
  Dims strides{rows * columns, 1, rows};
  if (dims.size() == 2) strides.erase(strides.begin());
  return {dims, data_type_of(type), strides};
}

// How the operand itself, (columns, rows) when `transposed`, lies in a format of the matrices.
Layout operand_layout(const TensorSpec& operand, const Desc& matrices, bool transposed) {
  return layout_of(operand, transposed ? matrices.permute_axes({1, 0}) : matrices);
}

// Whether bf16 units save more than it takes to round the factors.
bool is_worth_rounding(const ops::MatmulSizes& s) {
  constexpr std::int64_t kLeastSize = 16, kLeastProducts = std::int64_t{1} << 20;
  return std::min({s.m, s.n, s.k}) >= kLeastSize && s.batch * s.m * s.n * s.k >= kLeastProducts;
}

PreparedKernel matmul_stored_as(DType factors, const ops::MatmulSizes& s, const ops::Matmul& op,
                                const Epilogue& epilogue, const KernelRequest& request) {
  const bool is_single = s.batch == 1, is_narrow = factors == DType::bf16;
  const bool packs = is_single && s.m >= kPackedRows && !is_narrow;
  const bool is_linear = is_single && !op.transpose_a() && request.inputs[1].shape.rank() == 2;
  const DType result = is_narrow && is_linear && s.m * s.n >= kParallelElements ? DType::bf16 : DType::f32;
  const Dims weights_dims = matrix_dims(s.batch_b, s.k, s.n, is_single);
  const Desc src = matrices(factors, matrix_dims(s.batch_a, s.m, s.k, is_single), op.transpose_a());
  const Desc wanted = packs ? any_desc(factors, weights_dims) : matrices(factors, weights_dims, op.transpose_b());
  const Desc dst = matrices(result, matrix_dims(s.batch, s.m, s.n, is_single), false);
  const Desc column = plain_desc(DType::f32, matrix_dims(1, 1, s.n, is_single));
  return guarded(request.op->name(), [&] {
    std::vector<PrimitiveArgument> arguments{input_argument(DNNL_ARG_SRC, 0, src),
                                             output_argument(DNNL_ARG_DST, 0, dst)};
    PreparedKernel prepared = all_plain(request, nullptr);
    for (const std::size_t i : {0, 1}) prepared.input_layouts[i] = row_major(request.inputs[i], factors);
    prepared.output_layouts[0] = row_major(request.outputs[0], result);
    Desc bias;
    if (epilogue.bias >= 0) {
      bias = column;
      arguments.push_back(input_argument(DNNL_ARG_BIAS, static_cast<std::size_t>(epilogue.bias), bias));
    }
    const auto post_ops = post_ops_of(
        epilogue,
        [&](std::size_t operand) {
          // An operand of the output's size, or one value a column.
          const TensorSpec& spec = request.inputs[operand];
          if (spec.shape.elements() != s.batch * s.m * s.n) return column;
          prepared.input_layouts[operand] = row_major(spec, result);
          return dst;
        },
        arguments);
    const auto desc = matmul_product(src, wanted, bias, dst, attributes(post_ops, request.precision));
    const Desc weights = desc.weights_desc();
    arguments.push_back(input_argument(DNNL_ARG_WEIGHTS, 1, weights));
    prepared.kernel = primitive_kernel(dnnl::matmul(desc), desc, std::move(arguments));
    if (packs) prepared.input_layouts[1] = operand_layout(request.inputs[1], weights, op.transpose_b());
    return prepared;
  });
}

}  // namespace

PreparedKernel prepare_matmul_with(const ops::Matmul& op, const Epilogue& epilogue, const KernelRequest& request) {
  const ops::MatmulSizes s = ops::sizes_of(op, request.inputs[0].shape, request.inputs[1].shape);
  const Precision precision = is_worth_rounding(s) ? request.precision : Precision::fp32;
  return in_narrowest_type(precision, [&](DType stored) { return matmul_stored_as(stored, s, op, epilogue, request); });
}

namespace {

PreparedKernel prepare_matmul(Backend& backend, const ops::Matmul& op, const KernelRequest& request) {
  if (is_row_product(op, request)) return prepare_row_product(op, {}, request, backend.threads);
  return prepare_matmul_with(op, {}, request);
}

}  // namespace

void add_matmul(Kernels& kernels) { kernels.add<ops::Matmul, by_onednn<ops::Matmul, prepare_matmul>>(); }

}  // namespace concord::cpu
