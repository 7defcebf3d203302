// A matrix product of one row: a loop of our own over the weights where they lie, the epilogue included.
#include <fmt/format.h>

#include "concord/ops/matmul.hpp"
#include "epilogue.hpp"
#include "row_times_matrix.hpp"
#include "tile.hpp"

namespace concord::cpu {
namespace {

using F = ScalarFunction;

// With fewer weights than this, reading them is faster than waking another thread.
constexpr std::int64_t kParallelWeights = 1 << 17;

F function_of(dnnl::algorithm algorithm) {
  switch (algorithm) {
    case dnnl::algorithm::binary_mul: return F::multiply;
    case dnnl::algorithm::binary_sub: return F::subtract;
    default: return F::add;
  }
}

/// Columns begin … end of the result through the bias, the steps and the relu.
void finish_columns(const Epilogue& epilogue, const Pointers& pointers, std::int64_t begin, std::int64_t end) {
  float* values = pointers.output<float>(0) + begin;
  const auto apply = [&](F function, TileOperand other) {
    const TileOperand arguments[2] = {{values, false}, other};
    tile_apply(function, arguments, values, end - begin);
  };
  const auto operand = [&](int input) {
    return TileOperand{pointers.input<float>(static_cast<std::size_t>(input)) + begin, false};
  };
  if (epilogue.bias >= 0) apply(F::add, operand(epilogue.bias));
  for (const EpilogueStep& step : epilogue.steps) {
    if (step.operand >= 0) {
      apply(function_of(step.algorithm), operand(step.operand));
      continue;
    }
    apply(F::multiply, {&step.alpha, true});
    apply(F::add, {&step.beta, true});
  }
  const float zero = 0;
  if (epilogue.relu) apply(F::maximum, {&zero, true});
}

}  // namespace

bool is_row_product(const ops::Matmul& op, const KernelRequest& request) {
  const ops::MatmulSizes s = ops::sizes_of(op, request.inputs[0].shape, request.inputs[1].shape);
  return s.m == 1 && s.batch == 1;
}

PreparedKernel prepare_row_product(const ops::Matmul& op, const Epilogue& epilogue, const KernelRequest& request,
                                   int threads) {
  const ops::MatmulSizes s = ops::sizes_of(op, request.inputs[0].shape, request.inputs[1].shape);
  const bool transposed = op.transpose_b(), parallel = s.k * s.n >= kParallelWeights;
  Loop loop = [epilogue, threads, transposed, parallel, k = s.k, n = s.n](const Pointers& p) {
    const RowTimesMatrix product{p.input<float>(0), p.input<float>(1), p.output<float>(0), k, n, transposed};
    parallel_parts(n, threads, parallel, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
      row_times_matrix(product, begin, end);
      finish_columns(epilogue, p, begin, end);
    });
  };
  return all_plain(request,
                   loop_kernel(fmt::format("row times matrix{}", transposed ? " along k" : ""), 0, std::move(loop)));
}

}  // namespace concord::cpu
