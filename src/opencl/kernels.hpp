// The prepare functions of all operator families, one source file a family, and the table that finds them.
// Used by OpenClDevice.
#pragma once

#include "concord/device/kernel_table.hpp"
#include "concord/opencl/context.hpp"
#include "concord/opencl/pointwise.hpp"
#include "concord/ops/all_finite.hpp"
#include "concord/ops/attention.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/ctc.hpp"
#include "concord/ops/fused.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/gather_along.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/pointwise_group.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/random.hpp"
#include "concord/ops/recurrent.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/resample.hpp"
#include "concord/ops/row_norm.hpp"
#include "concord/ops/scan.hpp"
#include "concord/ops/softmax.hpp"
#include "concord/ops/top_k.hpp"

namespace concord::opencl {

// matmul.cpp
[[nodiscard]] PreparedKernel prepare_matmul(Context&, const ops::Matmul&, const KernelRequest&);
// conv.cpp
[[nodiscard]] PreparedKernel prepare_conv(Context&, const ops::Conv&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_conv_backward_data(Context&, const ops::ConvBackwardData&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_conv_backward_weights(Context&, const ops::ConvBackwardWeights&,
                                                           const KernelRequest&);
// pool.cpp
[[nodiscard]] PreparedKernel prepare_max_pool(Context&, const ops::MaxPool&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_max_pool_backward(Context&, const ops::MaxPoolBackward&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_avg_pool(Context&, const ops::AvgPool&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_avg_pool_backward(Context&, const ops::AvgPoolBackward&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_max_unpool(Context&, const ops::MaxUnpool&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_max_unpool_backward(Context&, const ops::MaxUnpoolBackward&, const KernelRequest&);
// all_finite.cpp
[[nodiscard]] PreparedKernel prepare_all_finite(Context&, const ops::AllFinite&, const KernelRequest&);
// reduce.cpp
[[nodiscard]] PreparedKernel prepare_reduce(Context&, const ops::Reduce&, const KernelRequest&);
// softmax.cpp
[[nodiscard]] PreparedKernel prepare_softmax(Context&, const ops::Softmax&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_softmax_backward(Context&, const ops::SoftmaxBackward&, const KernelRequest&);
// cross_entropy.cpp
[[nodiscard]] PreparedKernel prepare_cross_entropy(Context&, const ops::CrossEntropy&, const KernelRequest&);
// ctc.cpp
[[nodiscard]] PreparedKernel prepare_ctc(Context&, const ops::Ctc&, const KernelRequest&);
// normalise.cpp
[[nodiscard]] PreparedKernel prepare_batch_norm(Context&, const ops::BatchNorm&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_batch_norm_backward(Context&, const ops::BatchNormBackward&, const KernelRequest&);
// pointwise.cpp
[[nodiscard]] PreparedKernel prepare_pointwise(Context&, const ops::Pointwise&, const KernelRequest&);
// pointwise_group.cpp
[[nodiscard]] PreparedKernel prepare_pointwise_group(Context&, const ops::PointwiseGroup&, const KernelRequest&);
// copy.cpp
[[nodiscard]] PreparedKernel prepare_transpose(Context&, const ops::Transpose&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_slice(Context&, const ops::Slice&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_pad(Context&, const ops::Pad&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_concat(Context&, const ops::Concat&, const KernelRequest&);
// random.cpp
[[nodiscard]] PreparedKernel prepare_random(Context&, const ops::Random&, const KernelRequest&);
// recurrent.cpp
[[nodiscard]] PreparedKernel prepare_recurrent(Context&, const ops::Recurrent&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_recurrent_backward(Context&, const ops::RecurrentBackward&, const KernelRequest&);
// gather.cpp
[[nodiscard]] PreparedKernel prepare_gather(Context&, const ops::Gather&, const KernelRequest&);
// scatter_add.cpp
[[nodiscard]] PreparedKernel prepare_scatter_add(Context&, const ops::ScatterAdd&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_scatter_add_along(Context&, const ops::ScatterAddAlong&, const KernelRequest&);
// gather_along.cpp
[[nodiscard]] PreparedKernel prepare_gather_along(Context&, const ops::GatherAlong&, const KernelRequest&);
// row_norm.cpp
[[nodiscard]] PreparedKernel prepare_row_norm(Context&, const ops::RowNorm&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_row_norm_backward(Context&, const ops::RowNormBackward&, const KernelRequest&);
// resample.cpp, scan.cpp, top_k.cpp
[[nodiscard]] PreparedKernel prepare_resample(Context&, const ops::Resample&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_cumsum(Context&, const ops::CumSum&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_top_k(Context&, const ops::TopK&, const KernelRequest&);
// attention.cpp
[[nodiscard]] PreparedKernel prepare_attention(Context&, const ops::Attention&, const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_attention_backward_query(Context&, const ops::AttentionBackwardQuery&,
                                                              const KernelRequest&);
[[nodiscard]] PreparedKernel prepare_attention_backward_key_value(Context&, const ops::AttentionBackwardKeyValue&,
                                                                  const KernelRequest&);

// An operator followed by an expression, in one kernel. Each family that can states what it accepts.
// matmul.cpp
[[nodiscard]] bool matmul_accepts(const ops::Matmul&, std::span<const TensorSpec> inputs, const TensorSpec& output,
                                  const Expression& epilogue, std::span<const TensorSpec> extra);
[[nodiscard]] PreparedKernel prepare_matmul(Context&, const ops::Matmul&, const KernelRequest&, const Epilogue&);
// conv.cpp
[[nodiscard]] bool conv_accepts(const ops::Conv&, std::span<const TensorSpec> inputs, const TensorSpec& output,
                                const Expression& epilogue, std::span<const TensorSpec> extra);
[[nodiscard]] PreparedKernel prepare_conv(Context&, const ops::Conv&, const KernelRequest&, const Epilogue&);
[[nodiscard]] bool conv_backward_data_accepts(const ops::ConvBackwardData&, std::span<const TensorSpec> inputs,
                                              const TensorSpec& output, const Expression& epilogue,
                                              std::span<const TensorSpec> extra);
[[nodiscard]] PreparedKernel prepare_conv_backward_data(Context&, const ops::ConvBackwardData&, const KernelRequest&,
                                                        const Epilogue&);
// normalise.cpp
[[nodiscard]] bool batch_norm_accepts(const ops::BatchNorm&, std::span<const TensorSpec> inputs,
                                      const TensorSpec& output, const Expression& epilogue,
                                      std::span<const TensorSpec> extra);
[[nodiscard]] PreparedKernel prepare_batch_norm(Context&, const ops::BatchNorm&, const KernelRequest&, const Epilogue&);

/// Every operator of the backend.
[[nodiscard]] const KernelTable<Context>& kernel_table();
/// Device::supports_epilogue.
[[nodiscard]] bool supports_epilogue(const Context& context, const Operator& op, std::span<const TensorSpec> inputs,
                                     const TensorSpec& output, const Expression& epilogue,
                                     std::span<const TensorSpec> extra);

}  // namespace concord::opencl
