// The prepare functions of the families, one file each; kernel_table.cpp enters them into the table of the backend.
#pragma once

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
#include "kernels.hpp"

namespace concord::cpu {

PreparedKernel prepare_matmul(Backend& backend, const ops::Matmul& op, const KernelRequest& request);
PreparedKernel prepare_conv(Backend& backend, const ops::Conv& op, const KernelRequest& request);
PreparedKernel prepare_conv_backward_data(Backend& backend, const ops::ConvBackwardData& op,
                                          const KernelRequest& request);
PreparedKernel prepare_conv_backward_weights(Backend& backend, const ops::ConvBackwardWeights& op,
                                             const KernelRequest& request);
/// Of Matmul and Conv.
PreparedKernel prepare_fused(Backend& backend, const ops::Fused& op, const KernelRequest& request);
[[nodiscard]] bool supports_fused(CpuVariants& variants, const Operator& op, std::span<const TensorSpec> op_inputs,
                                  const TensorSpec& output, const Expression& epilogue,
                                  std::span<const TensorSpec> extra);

PreparedKernel prepare_max_pool(Backend& backend, const ops::MaxPool& op, const KernelRequest& request);
PreparedKernel prepare_max_pool_backward(Backend& backend, const ops::MaxPoolBackward& op,
                                         const KernelRequest& request);
PreparedKernel prepare_avg_pool(Backend& backend, const ops::AvgPool& op, const KernelRequest& request);
PreparedKernel prepare_avg_pool_backward(Backend& backend, const ops::AvgPoolBackward& op,
                                         const KernelRequest& request);
PreparedKernel prepare_max_unpool(Backend& backend, const ops::MaxUnpool& op, const KernelRequest& request);
PreparedKernel prepare_max_unpool_backward(Backend& backend, const ops::MaxUnpoolBackward& op,
                                           const KernelRequest& request);

PreparedKernel prepare_pointwise(Backend& backend, const ops::Pointwise& op, const KernelRequest& request);
PreparedKernel prepare_pointwise_group(Backend& backend, const ops::PointwiseGroup& op, const KernelRequest& request);
PreparedKernel prepare_all_finite(Backend& backend, const ops::AllFinite& op, const KernelRequest& request);
PreparedKernel prepare_reduce(Backend& backend, const ops::Reduce& op, const KernelRequest& request);
PreparedKernel prepare_softmax(Backend& backend, const ops::Softmax& op, const KernelRequest& request);
PreparedKernel prepare_softmax_backward(Backend& backend, const ops::SoftmaxBackward& op, const KernelRequest& request);
PreparedKernel prepare_cross_entropy(Backend& backend, const ops::CrossEntropy& op, const KernelRequest& request);
PreparedKernel prepare_ctc(Backend& backend, const ops::Ctc& op, const KernelRequest& request);
PreparedKernel prepare_batch_norm(Backend& backend, const ops::BatchNorm& op, const KernelRequest& request);
PreparedKernel prepare_batch_norm_backward(Backend& backend, const ops::BatchNormBackward& op,
                                           const KernelRequest& request);

PreparedKernel prepare_transpose(Backend& backend, const ops::Transpose& op, const KernelRequest& request);
PreparedKernel prepare_slice(Backend& backend, const ops::Slice& op, const KernelRequest& request);
PreparedKernel prepare_pad(Backend& backend, const ops::Pad& op, const KernelRequest& request);
PreparedKernel prepare_concat(Backend& backend, const ops::Concat& op, const KernelRequest& request);
PreparedKernel prepare_random(Backend& backend, const ops::Random& op, const KernelRequest& request);
PreparedKernel prepare_recurrent(Backend& backend, const ops::Recurrent& op, const KernelRequest& request);
PreparedKernel prepare_recurrent_backward(Backend& backend, const ops::RecurrentBackward& op,
                                          const KernelRequest& request);
PreparedKernel prepare_gather(Backend& backend, const ops::Gather& op, const KernelRequest& request);
PreparedKernel prepare_scatter_add(Backend& backend, const ops::ScatterAdd& op, const KernelRequest& request);
PreparedKernel prepare_gather_along(Backend& backend, const ops::GatherAlong& op, const KernelRequest& request);
PreparedKernel prepare_scatter_add_along(Backend& backend, const ops::ScatterAddAlong& op,
                                         const KernelRequest& request);

PreparedKernel prepare_row_norm(Backend& backend, const ops::RowNorm& op, const KernelRequest& request);
PreparedKernel prepare_row_norm_backward(Backend& backend, const ops::RowNormBackward& op,
                                         const KernelRequest& request);
PreparedKernel prepare_resample(Backend& backend, const ops::Resample& op, const KernelRequest& request);
PreparedKernel prepare_cumsum(Backend& backend, const ops::CumSum& op, const KernelRequest& request);
PreparedKernel prepare_top_k(Backend& backend, const ops::TopK& op, const KernelRequest& request);
PreparedKernel prepare_attention(Backend& backend, const ops::Attention& op, const KernelRequest& request);
PreparedKernel prepare_attention_backward_query(Backend& backend, const ops::AttentionBackwardQuery& op,
                                                const KernelRequest& request);
PreparedKernel prepare_attention_backward_key_value(Backend& backend, const ops::AttentionBackwardKeyValue& op,
                                                    const KernelRequest& request);

}  // namespace concord::cpu
