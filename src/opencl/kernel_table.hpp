// The kernels of all operator families. Used by OpenClDevice.
#pragma once

#include "concord/opencl/formula/kernels.hpp"

namespace concord::opencl {

/// Every operator of the backend.
[[nodiscard]] const Kernels& kernel_table();

/// Device::supports_epilogue.
[[nodiscard]] bool supports_epilogue(const Context& context, const Operator& op, std::span<const TensorSpec> inputs,
                                     const TensorSpec& output, const Expression& epilogue,
                                     std::span<const TensorSpec> extra);

}  // namespace concord::opencl
