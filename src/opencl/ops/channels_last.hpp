// Operators on images in channels-last layout (formula/channels_last.hpp). Used by the families' own files.
#pragma once

#include <optional>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::opencl {

// Each function returns nothing where no input has this layout, or where the kernels do not support the problem.
[[nodiscard]] std::optional<PreparedKernel> prepare_batch_norm_channels_last(Context&, const ops::BatchNorm&,
                                                                             const KernelRequest&);
[[nodiscard]] std::optional<PreparedKernel> prepare_batch_norm_channels_last(Context&, const ops::BatchNorm&,
                                                                             const KernelRequest&, const Epilogue&);
[[nodiscard]] std::optional<PreparedKernel> prepare_batch_norm_backward_channels_last(Context&,
                                                                                      const ops::BatchNormBackward&,
                                                                                      const KernelRequest&);
[[nodiscard]] std::optional<PreparedKernel> prepare_batch_norm_backward_channels_last(Context&,
                                                                                      const ops::BatchNormBackward&,
                                                                                      const KernelRequest&,
                                                                                      const Epilogue&);
// pool_channels_last.cpp
[[nodiscard]] std::optional<PreparedKernel> prepare_max_pool_channels_last(Context&, const ops::MaxPool&,
                                                                           const KernelRequest&);
[[nodiscard]] std::optional<PreparedKernel> prepare_max_pool_backward_channels_last(Context&,
                                                                                    const ops::MaxPoolBackward&,
                                                                                    const KernelRequest&);
// copy_channels_last.cpp
[[nodiscard]] std::optional<PreparedKernel> prepare_concat_channels_last(Context&, const ops::Concat&,
                                                                         const KernelRequest&);
[[nodiscard]] std::optional<PreparedKernel> prepare_slice_channels_last(Context&, const ops::Slice&,
                                                                        const KernelRequest&);
// reduce_channels_last.cpp
[[nodiscard]] std::optional<PreparedKernel> prepare_reduce_channels_last(Context&, const ops::Reduce&,
                                                                         const KernelRequest&);

}  // namespace concord::opencl
