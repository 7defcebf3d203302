// Matmul of tokens in 16 bits (formula/channels_last.hpp). Used by matmul.cpp.
#pragma once

#include <optional>

#include "concord/device/kernel.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/matmul.hpp"

namespace concord::opencl {

/// A linear map of tokens, whose result are tokens in 16 bits, or the sum over tokens that is the gradient of its
/// weights, whose result is row-major fp32. Nothing where the copy engine does not take the operands. `epilogue` may be
/// null.
[[nodiscard]] std::optional<PreparedKernel> prepare_matmul_tokens(Context& context, const ops::Matmul& op,
                                                                  const KernelRequest& request,
                                                                  const Epilogue* epilogue);

/// Whether patches of such an image are better moved into tokens and multiplied than gathered by a convolution: where
/// the copy engine cannot gather them, because a pixel has no whole blocks of channels.
[[nodiscard]] bool multiplies_patches(Context& context, const Shape& src, const Shape& weights, Precision precision);

}  // namespace concord::opencl
