// Matmul of tokens in 16 bits: where they lie (gemm/hopper/tokens.hpp), or as convolutions with one tap, where the
// tokens are the places of one image and weights are packed.
#include "concord/opencl/ops/matmul_tokens.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "concord/opencl/formula/channel_columns.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/formula/padded_tokens.hpp"
#include "concord/opencl/gemm/channels_last.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/hopper/tokens.hpp"
#include "concord/opencl/gemm/matrix_kernel.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/launch/strides.hpp"

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

bool takes(Context& context, const TokensProduct& product) {
  return context.alternatives().is_enabled(alternative::kTokensProduct) &&
         tokens_product_refusal(context, product).empty();
}

/// How the tensor lies, or would lie, as tokens. Padded tokens are not made of others for a product.
Layout tokens_of(const KernelRequest& request, std::size_t i) {
  const DType number = storage_number(request.precision);
  if (as_padded_tokens(request.input_layouts[i]) != nullptr) return request.input_layouts[i];
  return channels_last(request.inputs[i], number, ChannelAxis::last);
}

/// Numbers from token to token.
std::int64_t pitch_of(std::int64_t channels) { return round_up(channels, ChannelsLast::kBlock); }

/// tokens (…, k) by weights (k, m), or (m, k): the features m of a token lie side by side.
struct LinearMap {
  ops::MatmulSizes sizes;
  Layout left, result;
  EpilogueText epilogue = {};
  std::vector<std::size_t> tokens = {0};  // inputs that are
};

std::optional<LinearMap> linear_map(const Context& context, const ops::Matmul& op, const KernelRequest& request,
                                    const Epilogue* epilogue) {
  LinearMap map{ops::sizes_of(op, request.inputs[0].shape, request.inputs[1].shape), tokens_of(request, 0),
                any_tokens(request.outputs[0], storage_number(request.precision))};
  const ops::MatmulSizes& s = map.sizes;
  if (request.inputs[1].shape.rank() != 2 || map.left == nullptr || map.result == nullptr ||
      !is_worth_reorders(context, s.m * s.n * s.k)) {
    return std::nullopt;
  }
  if (epilogue == nullptr) return map;
  std::optional<EpilogueText> printed = block_epilogue(request, *epilogue, ChannelAxis::last);
  if (!printed) return std::nullopt;
  map.epilogue = *std::move(printed);
  for (const std::size_t i : like_result(request, request.inputs)) {
    if (i >= epilogue->first_extra) map.tokens.push_back(i);
  }
  return map;
}

/// The operands where they lie, also the weights: the same numbers serve all products with them.
std::optional<PlacedProduct> placed(Context& context, const ops::Matmul& op, const KernelRequest& request,
                                    const LinearMap& map) {
  const ops::MatmulSizes& s = map.sizes;
  const Layout weights = channels_last(request.inputs[1], storage_number(request.precision), ChannelAxis::last);
  if (weights == nullptr) return std::nullopt;
  PlacedProduct result{.product = {.rows = s.m,
                                   .columns = s.n,
                                   .k = s.k,
                                   .left = {input(0), false, pitch_of(s.k)},
                                   .right = {input(1), !op.transpose_b(), op.transpose_b() ? s.k : s.n},
                                   .result = output(0),
                                   .pitch = pitch_of(s.n),
                                   .precision = request.precision,
                                   .epilogue = map.epilogue},
                       .inputs = std::vector<Layout>(request.inputs.size()),
                       .result = map.result};
  if (!takes(context, result.product)) return std::nullopt;
  for (const std::size_t i : map.tokens) {
    result.inputs[i] = i == 0 ? map.left : as_operand(request.input_layouts[i], map.result);
  }
  result.inputs[1] = weights;
  return result;
}

PreparedKernel prepare_placed(Context& context, const KernelRequest& request, const PlacedProduct& placed) {
  context.alternatives().count(alternative::kTokensProduct);
  PreparedKernel answer = prepared(request, prepare_tokens_products(context, {&placed.product, 1}, "matmul"));
  answer.input_layouts = placed.inputs;
  answer.output_layouts[0] = placed.result;
  return answer;
}

std::optional<PreparedKernel> prepare_linear(Context& context, const ops::Matmul& op, const KernelRequest& request,
                                             const Epilogue* epilogue) {
  const std::optional<LinearMap> map = linear_map(context, op, request, epilogue);
  if (!map) return std::nullopt;
  if (const auto in_place = placed(context, op, request, *map)) return prepare_placed(context, request, *in_place);
  constexpr std::array<std::size_t, 1> kResult{0};
  if (as_channels_last(map->left) == nullptr || as_channels_last(map->result) == nullptr) return std::nullopt;
  const ops::MatmulSizes& s = map->sizes;
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
  gemm.epilogue = map->epilogue;
  if (!is_possible(context, gemm)) return std::nullopt;
  return prepared_channels_last(request, prepare_gemm(context, gemm, "matmul"), map->tokens, kResult,
                                ChannelAxis::last);
}

/// The epilogue of a result in rows.
std::optional<EpilogueText> row_epilogue(const KernelRequest& request, const Epilogue& epilogue) {
  std::vector<EpilogueOperand> extra;
  for (std::size_t i = epilogue.first_extra; i < request.inputs.size(); ++i) {
    const auto strides =
        grouped_strides(request.inputs[i].shape, request.outputs[0].shape, std::array<std::size_t, 3>{0, 1, 2});
    if (!strides) return std::nullopt;
    extra.push_back({i, request.inputs[i].dtype, (*strides)[0], (*strides)[1], 0, (*strides)[2]});
  }
  return gemm_epilogue(epilogue.expression, extra);
}

/// (tokens, m)ᵀ by (tokens, n): at least one of them lies in 16 bits already. Returns how they lie as tokens.
std::optional<std::array<Layout, 2>> factors_of_gradient(const KernelRequest& request) {
  if (request.inputs[0].shape.rank() != 2 || request.inputs[1].shape.rank() != 2) return std::nullopt;
  const std::array<Layout, 2> layouts{tokens_of(request, 0), tokens_of(request, 1)};
  const auto lies_so = [&](std::size_t i) { return layouts[i] && same_layout(layouts[i], request.input_layouts[i]); };
  if (layouts[0] == nullptr || layouts[1] == nullptr || !(lies_so(0) || lies_so(1))) return std::nullopt;
  return layouts;
}

std::optional<PlacedProduct> placed(Context& context, const KernelRequest& request,
                                    const std::array<Layout, 2>& factors, const Epilogue* epilogue) {
  const Shape &left = request.inputs[0].shape, &right = request.inputs[1].shape;
  EpilogueText text;
  if (epilogue != nullptr) {
    std::optional<EpilogueText> printed = row_epilogue(request, *epilogue);
    if (!printed) return std::nullopt;
    text = *std::move(printed);
  }
  const std::optional<TokensProduct> product =
      weights_gradient_product(context, left, right, request.precision, std::move(text));
  if (!product) return std::nullopt;
  PlacedProduct result{.product = *product, .inputs = std::vector<Layout>(request.inputs.size())};
  std::ranges::copy(factors, result.inputs.begin());
  return result;
}

std::optional<PreparedKernel> prepare_weights_gradient(Context& context, const KernelRequest& request,
                                                       const Epilogue* epilogue) {
  const std::optional<std::array<Layout, 2>> layouts = factors_of_gradient(request);
  if (!layouts) return std::nullopt;
  if (const auto in_place = placed(context, request, *layouts, epilogue)) {
    return prepare_placed(context, request, *in_place);
  }
  constexpr std::array<std::size_t, 2> kFactors{0, 1};
  if (epilogue != nullptr || as_channels_last((*layouts)[0]) == nullptr || as_channels_last((*layouts)[1]) == nullptr) {
    return std::nullopt;
  }
  const Shape &left = request.inputs[0].shape, &right = request.inputs[1].shape;
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
  return prepared_channels_last(request, prepare_gemm(context, gemm, "matmul"), kFactors, {}, ChannelAxis::last);
}

}  // namespace

std::optional<TokensProduct> weights_gradient_product(Context& context, const Shape& left, const Shape& right,
                                                      Precision precision, EpilogueText epilogue) {
  TokensProduct product{.rows = left[1],
                        .columns = right[1],
                        .k = left[0],
                        .left = {input(0), true, pitch_of(left[1])},
                        .right = {input(1), true, pitch_of(right[1])},
                        .result = output(0),
                        .pitch = right[1],
                        .is_fp32 = true,
                        .precision = precision,
                        .epilogue = std::move(epilogue)};
  return takes(context, product) ? std::optional(std::move(product)) : std::nullopt;
}

bool is_worth_reorders(const Context& context, std::int64_t products) {
  constexpr std::int64_t kLeastProducts = 1'000'000'000;
  return products >= kLeastProducts || context.alternatives().preferred({}) == alternative::kTokensProduct;
}

std::optional<PlacedProduct> place_product(Context& context, const ops::Matmul& op, const KernelRequest& request,
                                           const Epilogue* epilogue) {
  if (!storage_refusal(context, request.precision).empty()) return std::nullopt;
  if (!op.transpose_a()) {
    const std::optional<LinearMap> map = linear_map(context, op, request, epilogue);
    return map ? placed(context, op, request, *map) : std::nullopt;
  }
  const auto factors = op.transpose_b() ? std::nullopt : factors_of_gradient(request);
  return factors ? placed(context, request, *factors, epilogue) : std::nullopt;
}

bool multiplies_patches(Context& context, const Shape& src, const Shape& weights, Precision precision) {
  const std::int64_t values = weights.elements() / weights[0];
  const bool are_blocks = values % ChannelsLast::kBlock == 0 && weights[0] % ChannelsLast::kBlock == 0;
  const bool has_tokens = storage_refusal(context, precision).empty() &&
                          find_gemm_implementation("tma")->device_refusal(context, precision).empty();
  return has_tokens && src[1] % ChannelsLast::kBlock != 0 && are_blocks &&
         is_worth_reorders(context, src.elements() * weights[0]);
}

std::optional<PreparedKernel> prepare_matmul_tokens(Context& context, const ops::Matmul& op,
                                                    const KernelRequest& request, const Epilogue* epilogue) {
  if (!storage_refusal(context, request.precision).empty()) return std::nullopt;
  std::optional<PreparedKernel> kernel;
  if (!op.transpose_a()) {
    kernel = prepare_linear(context, op, request, epilogue);
  } else if (!op.transpose_b()) {
    kernel = prepare_weights_gradient(context, request, epilogue);
  }
  if (kernel) context.alternatives().count(alternative::kChannelsLast);
  return kernel;
}

}  // namespace concord::opencl
