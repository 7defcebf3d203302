// Matmul of tokens in 16 bits (formula/channels_last.hpp). Used by matmul.cpp.
#pragma once

#include <optional>
#include <vector>

#include "concord/device/kernel.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/gemm/hopper/tokens.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/matmul.hpp"

namespace concord::opencl {

/// A linear map of tokens, whose result are tokens in 16 bits, or the sum over tokens that is the gradient of its
/// weights, whose result is row-major fp32. Nothing where the copy engine does not take the operands. `epilogue` may be
/// null.
[[nodiscard]] std::optional<PreparedKernel> prepare_matmul_tokens(Context& context, const ops::Matmul& op,
                                                                  const KernelRequest& request,
                                                                  const Epilogue* epilogue);

/// A product that the copy engine reads and writes where its operands lie.
struct PlacedProduct {
  TokensProduct product;  // of the inputs and the output of the request
  std::vector<Layout> inputs;
  Layout result = nullptr;
};
/// The same as such a product; nothing where it is none.
[[nodiscard]] std::optional<PlacedProduct> place_product(Context& context, const ops::Matmul& op,
                                                         const KernelRequest& request, const Epilogue* epilogue);

/// The gradient of weights as such a product, of factors of these shapes that lie as tokens; nothing where it is none.
[[nodiscard]] std::optional<TokensProduct> weights_gradient_product(Context& context, const Shape& left,
                                                                    const Shape& right, Precision precision,
                                                                    EpilogueText epilogue = {});

/// Whether so many multiplications are worth values in 16 bits. Networks of smaller products have values that are soon
/// moved: reorders cost more. gpt_tiny's inference takes 0.70 ms with tokens and 0.53 ms without on an NVIDIA H200.
[[nodiscard]] bool is_worth_reorders(const Context& context, std::int64_t products);

/// Whether patches of such an image are better moved into tokens and multiplied than gathered by a convolution: where
/// the copy engine cannot gather them, because a pixel has no whole blocks of channels.
[[nodiscard]] bool multiplies_patches(Context& context, const Shape& src, const Shape& weights, Precision precision);

}  // namespace concord::opencl
