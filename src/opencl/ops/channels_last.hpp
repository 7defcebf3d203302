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
// image_sums.cpp
/// Sums over the places of every image and channel, divided by `divisor`: request.inputs[0] lies as `image`, the result
/// (N, C, …) is row-major.
[[nodiscard]] PreparedKernel prepare_image_sums(Context&, const KernelRequest&, const ChannelsLast& image,
                                                std::string name, float divisor = 1);
// pool.cpp
/// What the kernels of pooling are compiled for.
[[nodiscard]] std::vector<std::string> pool_definitions(const ops::PoolSizes& sizes);
// pool_channels_last.cpp. The epilogue may be null.
[[nodiscard]] std::optional<PreparedKernel> prepare_max_pool_channels_last(Context&, const ops::MaxPool&,
                                                                           const KernelRequest&);
[[nodiscard]] std::optional<PreparedKernel> prepare_max_pool_backward_channels_last(Context&,
                                                                                    const ops::MaxPoolBackward&,
                                                                                    const KernelRequest&,
                                                                                    const Epilogue*);
[[nodiscard]] std::optional<PreparedKernel> prepare_avg_pool_channels_last(Context&, const ops::AvgPool&,
                                                                           const KernelRequest&);
[[nodiscard]] std::optional<PreparedKernel> prepare_avg_pool_backward_channels_last(Context&,
                                                                                    const ops::AvgPoolBackward&,
                                                                                    const KernelRequest&,
                                                                                    const Epilogue*);
// copy_channels_last.cpp
[[nodiscard]] std::optional<PreparedKernel> prepare_concat_channels_last(Context&, const ops::Concat&,
                                                                         const KernelRequest&);
[[nodiscard]] std::optional<PreparedKernel> prepare_slice_channels_last(Context&, const ops::Slice&,
                                                                        const KernelRequest&);
// reduce_channels_last.cpp
[[nodiscard]] std::optional<PreparedKernel> prepare_reduce_channels_last(Context&, const ops::Reduce&,
                                                                         const KernelRequest&);
[[nodiscard]] bool reduce_supports_prologue(const ops::Reduce&, std::span<const TensorSpec> inputs,
                                            const Expression& prologue, std::span<const TensorSpec> extra);
/// No kernel of sums has an epilogue.
[[nodiscard]] std::optional<PreparedKernel> prepare_prologued_reduce(Context&, const ops::Reduce&, const KernelRequest&,
                                                                     const Prologue&, const Epilogue*);

}  // namespace concord::opencl
