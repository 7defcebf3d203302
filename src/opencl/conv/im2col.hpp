// The reference: im2col and CLBlast, image by image and group by group.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "concord/device/kernel.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/launch/stage.hpp"
#include "concord/ops/conv.hpp"

namespace concord::opencl {

[[nodiscard]] std::unique_ptr<Kernel> conv_forward_im2col(Context& context, const ops::ConvSizes& sizes);
[[nodiscard]] std::unique_ptr<Kernel> conv_backward_data_im2col(Context& context, const ops::ConvSizes& sizes);
[[nodiscard]] std::unique_ptr<Kernel> conv_backward_weights_im2col(Context& context, const ops::ConvSizes& sizes);

}  // namespace concord::opencl
