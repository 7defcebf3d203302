// Matmul on OpenCL devices: a GEMM of dense operands.
#include "concord/ops/matmul.hpp"

#include <algorithm>
#include <array>

#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/launch/strides.hpp"
#include "concord/opencl/ops/matmul_tokens.hpp"

namespace concord::opencl {
namespace {

/// Whether the batches of the left operand count as rows: all batches share one right operand.
bool batches_are_rows(const ops::Matmul& op, const ops::MatmulSizes& sizes) {
  return sizes.batch_b == 1 && !op.transpose_a();
}

/// The groups of output dimensions that a GEMM kernel walks as z, m and n.
std::array<std::size_t, 3> groups_of(const ops::Matmul& op, const ops::MatmulSizes& sizes, std::size_t rank) {
  return {batches_are_rows(op, sizes) ? 0 : rank - 2, rank - 1, rank};
}

Gemm gemm_of(const ops::Matmul& op, const KernelRequest& request) {
  const ops::MatmulSizes s = ops::sizes_of(op, request.inputs[0].shape, request.inputs[1].shape);
  // A matrix with a single column is stored as a row.
  const bool a_along_k = !op.transpose_a() || s.m == 1;
  Gemm gemm = dense_gemm(s.m, s.n, s.k, a_along_k, op.transpose_b());
  gemm.precision = request.precision;
  gemm.batch = s.batch;
  gemm.a.batch = s.batch_a == 1 ? 0 : s.m * s.k;
  gemm.b.batch = s.batch_b == 1 ? 0 : s.k * s.n;
  gemm.c.batch = s.m * s.n;
  if (batches_are_rows(op, s)) {
    gemm.m *= s.batch;
    gemm.batch = 1;
  }
  for (const TensorSpec& spec : request.inputs) gemm.largest = std::max(gemm.largest, spec.shape.elements());
  gemm.largest = std::max(gemm.largest, request.outputs[0].shape.elements());
  return gemm;
}

PreparedKernel prepare_matmul(Context& context, const ops::Matmul& op, const KernelRequest& request) {
  if (auto kernel = prepare_matmul_tokens(context, op, request, nullptr)) return *std::move(kernel);
  return prepared(request, prepare_gemm(context, gemm_of(op, request), "matmul"));
}

bool matmul_supports_epilogue(const ops::Matmul& op, std::span<const TensorSpec> inputs, const TensorSpec& output,
                              const Expression& epilogue, std::span<const TensorSpec> extra) {
  if (epilogue.uses_coordinates() || epilogue.results().size() != 1 || output.dtype != DType::f32) return false;
  const ops::MatmulSizes sizes = ops::sizes_of(op, inputs[0].shape, inputs[1].shape);
  const auto ends = groups_of(op, sizes, output.shape.rank());
  return std::all_of(extra.begin(), extra.end(), [&](const TensorSpec& spec) {
    return grouped_strides(spec.shape, output.shape, ends).has_value();
  });
}

PreparedKernel prepare_fused_matmul(Context& context, const ops::Matmul& op, const KernelRequest& request,
                                    const Epilogue& epilogue) {
  if (auto kernel = prepare_matmul_tokens(context, op, request, &epilogue)) return *std::move(kernel);
  const Shape& output = request.outputs[0].shape;
  const ops::MatmulSizes sizes = ops::sizes_of(op, request.inputs[0].shape, request.inputs[1].shape);
  const auto ends = groups_of(op, sizes, output.rank());
  std::vector<EpilogueOperand> extra;
  for (std::size_t i = epilogue.first_extra; i < request.inputs.size(); ++i) {
    const std::vector<std::int64_t> strides = grouped_strides(request.inputs[i].shape, output, ends).value();
    extra.push_back({i, request.inputs[i].dtype, strides[0], strides[1], 0, strides[2]});
  }
  Gemm gemm = gemm_of(op, request);
  gemm.epilogue = gemm_epilogue(epilogue.expression, extra);
  return prepared(request, prepare_gemm(context, gemm, "matmul"));
}

}  // namespace

void add_matmul(Kernels& kernels) {
  kernels.add<ops::Matmul, prepare_matmul>();
  kernels.add_fused<ops::Matmul, matmul_supports_epilogue, prepare_fused_matmul>();
}

}  // namespace concord::opencl
