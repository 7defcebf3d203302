// The passes of a depthwise convolution on images that lie channels-last.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "concord/device/kernel.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/conv.hpp"

namespace concord::opencl {

[[nodiscard]] std::optional<PreparedKernel> conv_depthwise_forward_channels_last(Context& context,
                                                                                 const ops::ConvSizes& sizes,
                                                                                 const KernelRequest& request,
                                                                                 std::string_view label,
                                                                                 const Epilogue* epilogue);
[[nodiscard]] std::optional<PreparedKernel> conv_depthwise_backward_data_channels_last(Context& context,
                                                                                       const ops::ConvSizes& sizes,
                                                                                       const KernelRequest& request,
                                                                                       std::string_view label);
[[nodiscard]] std::optional<PreparedKernel> conv_depthwise_backward_weights_channels_last(Context& context,
                                                                                          const ops::ConvSizes& sizes,
                                                                                          const KernelRequest& request,
                                                                                          std::string_view label);

}  // namespace concord::opencl
