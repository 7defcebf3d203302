// Matmul of tokens in 16 bits, as convolutions with one tap: the tokens are the places of one image.
#include "concord/opencl/ops/matmul_tokens.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/gemm/channels_last.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/matrix_kernel.hpp"
#include "concord/opencl/launch/alternatives.hpp"

namespace concord::opencl {
namespace {

/// The patches of one tap on an image of one line of `tokens` places.
Patch one_tap(std::int64_t tokens, bool places_are_k) {
  PatchPart tap{1, 1, 1, 1, {0, 1, 1}}, places{tokens, tokens, tokens, tokens, {0, 1, 1}};
  if (places_are_k) std::swap(tap, places);
  return {tap, places, {0, 0, 0}, {1, 1, tokens}, {1, 1, 1}, true};
}

GemmRight tokens_operand(std::size_t i, std::int64_t elements, bool places_are_k) {
  GemmRight right{input(i), 0, 0, 0, places_are_k, 0, true, elements};
  right.is_channels_last = true;
  return right;
}

/// Whether the copy engine takes the operands, and the product is worth it.
bool is_possible(Context& context, const Gemm& gemm) {
  const GemmImplementation& tma = tma_gemm();
  return is_for_matrix_cores(gemm) && tma.refusal(context, gemm).empty() &&
         tma.device_refusal(context, gemm.precision).empty();
}

/// tokens (…, k) by weights (k, m), or (m, k), in fp32: the features m of a token lie side by side.
std::optional<PreparedKernel> prepare_linear(Context& context, const ops::Matmul& op, const KernelRequest& request,
                                             const Epilogue* epilogue) {
  const ops::MatmulSizes s = ops::sizes_of(op, request.inputs[0].shape, request.inputs[1].shape);
  const DType number = storage_number(request.precision);
  if (request.inputs[1].shape.rank() != 2 || !channels_last(request.inputs[0], number, ChannelAxis::last) ||
      !channels_last(request.outputs[0], number, ChannelAxis::last)) {
    return std::nullopt;
  }
  Gemm gemm;
  gemm.m = s.n;
  gemm.n = s.m;
  gemm.k = s.k;
  gemm.batch = 1;
  gemm.precision = request.precision;
  gemm.a = op.transpose_b() ? GemmLeft{input(1), 0, s.k, 1} : GemmLeft{input(1), 0, 1, s.n};
  gemm.b = tokens_operand(0, s.m * s.k, false);
  gemm.patch = one_tap(s.m, false);
  gemm.c = {output(0), 0, 0, 1, s.n};
  gemm.c.is_channels_last = true;
  gemm.largest = std::max({s.m * s.k, s.k * s.n, s.m * s.n});
  // Networks of smaller products have values that are soon moved: reorders cost more. gpt_tiny's inference takes
  // 0.70 ms with tokens and 0.53 ms without on an NVIDIA H200.
  constexpr std::int64_t kLeastProducts = 1'000'000'000;
  if (gemm.m * gemm.n * gemm.k < kLeastProducts || !is_possible(context, gemm)) return std::nullopt;
  std::vector<std::size_t> tokens{0};
  if (epilogue != nullptr) {
    const std::optional<EpilogueText> text = block_epilogue(request, *epilogue, ChannelAxis::last);
    if (!text) return std::nullopt;
    gemm.epilogue = *text;
    for (const std::size_t i : like_result(request, request.inputs)) {
      if (i >= epilogue->first_extra) tokens.push_back(i);
    }
  }
  return prepared_channels_last(request, prepare_gemm(context, gemm, "matmul"), tokens, std::array<std::size_t, 1>{0},
                                ChannelAxis::last);
}

/// (tokens, m)ᵀ by (tokens, n): at least one of them lies in 16 bits already.
std::optional<PreparedKernel> prepare_weights_gradient(Context& context, const KernelRequest& request) {
  const Shape &left = request.inputs[0].shape, &right = request.inputs[1].shape;
  const DType number = storage_number(request.precision);
  if (left.rank() != 2 || right.rank() != 2 || first_channels_last(request, ChannelAxis::last) == nullptr ||
      !channels_last(request.inputs[0], number, ChannelAxis::last) ||
      !channels_last(request.inputs[1], number, ChannelAxis::last)) {
    return std::nullopt;
  }
  const std::int64_t tokens = left[0];
  Gemm gemm;
  gemm.m = left[1];
  gemm.n = right[1];
  gemm.k = tokens;
  gemm.batch = 1;
  gemm.precision = request.precision;
  gemm.a = {input(0), 0, tokens, 1};
  gemm.a.is_channels_last = true;
  gemm.b = tokens_operand(1, tokens * gemm.n, true);
  gemm.patch = one_tap(tokens, true);
  gemm.c = {output(0), gemm.m * gemm.n, gemm.n};
  gemm.largest = std::max({tokens * gemm.m, tokens * gemm.n, gemm.m * gemm.n});
  if (!is_possible(context, gemm)) return std::nullopt;
  return prepared_channels_last(request, prepare_gemm(context, gemm, "matmul"), std::array<std::size_t, 2>{0, 1}, {},
                                ChannelAxis::last);
}

}  // namespace

std::optional<PreparedKernel> prepare_matmul_tokens(Context& context, const ops::Matmul& op,
                                                    const KernelRequest& request, const Epilogue* epilogue) {
  if (!storage_refusal(context, request.precision).empty()) return std::nullopt;
  std::optional<PreparedKernel> kernel;
  if (!op.transpose_a()) {
    kernel = prepare_linear(context, op, request, epilogue);
  } else if (!op.transpose_b() && epilogue == nullptr) {
    kernel = prepare_weights_gradient(context, request);
  }
  if (kernel) context.alternatives().count(alternative::kChannelsLast);
  return kernel;
}

}  // namespace concord::opencl
