// The table of the backend: every operator it has a kernel for.
#include "concord/device/kernel_table.hpp"

#include "families.hpp"
#include "onednn_faults.hpp"

namespace concord::cpu {
namespace {

/// A kernel that may hand its operands to oneDNN.
template <class Op, KernelTable<Backend>::Prepare<Op> prepare>
PreparedKernel by_onednn(Backend& backend, const Op& op, const KernelRequest& request) {
  check_countable(request);
  return prepare(backend, op, request);
}

}  // namespace

const KernelTable<Backend>& kernel_table() {
  static const KernelTable<Backend> table = [] {
    KernelTable<Backend> t;
    t.add<ops::Matmul, by_onednn<ops::Matmul, prepare_matmul>>();
    t.add<ops::Conv, by_onednn<ops::Conv, prepare_conv>>();
    t.add<ops::ConvBackwardData, by_onednn<ops::ConvBackwardData, prepare_conv_backward_data>>();
    t.add<ops::ConvBackwardWeights, by_onednn<ops::ConvBackwardWeights, prepare_conv_backward_weights>>();
    t.add<ops::Fused, by_onednn<ops::Fused, prepare_fused>>();
    t.add<ops::MaxPool, prepare_max_pool>();
    t.add<ops::MaxPoolBackward, prepare_max_pool_backward>();
    t.add<ops::AvgPool, prepare_avg_pool>();
    t.add<ops::AvgPoolBackward, prepare_avg_pool_backward>();
    t.add<ops::MaxUnpool, prepare_max_unpool>();
    t.add<ops::MaxUnpoolBackward, prepare_max_unpool_backward>();
    t.add<ops::Pointwise, prepare_pointwise>();
    t.add<ops::PointwiseGroup, prepare_pointwise_group>();
    t.add<ops::AllFinite, prepare_all_finite>();
    t.add<ops::Reduce, prepare_reduce>();
    t.add<ops::Softmax, prepare_softmax>();
    t.add<ops::SoftmaxBackward, prepare_softmax_backward>();
    t.add<ops::CrossEntropy, prepare_cross_entropy>();
    t.add<ops::Ctc, prepare_ctc>();
    t.add<ops::BatchNorm, prepare_batch_norm>();
    t.add<ops::BatchNormBackward, prepare_batch_norm_backward>();
    t.add<ops::Transpose, prepare_transpose>();
    t.add<ops::Slice, prepare_slice>();
    t.add<ops::Pad, prepare_pad>();
    t.add<ops::Concat, prepare_concat>();
    t.add<ops::Random, prepare_random>();
    t.add<ops::Gather, prepare_gather>();
    t.add<ops::ScatterAdd, prepare_scatter_add>();
    t.add<ops::GatherAlong, prepare_gather_along>();
    t.add<ops::ScatterAddAlong, prepare_scatter_add_along>();
    t.add<ops::RowNorm, prepare_row_norm>();
    t.add<ops::RowNormBackward, prepare_row_norm_backward>();
    t.add<ops::Resample, prepare_resample>();
    t.add<ops::CumSum, prepare_cumsum>();
    t.add<ops::TopK, prepare_top_k>();
    t.add<ops::Recurrent, prepare_recurrent>();
    t.add<ops::RecurrentBackward, prepare_recurrent_backward>();
    t.add<ops::Attention, prepare_attention>();
    t.add<ops::AttentionBackwardQuery, prepare_attention_backward_query>();
    t.add<ops::AttentionBackwardKeyValue, prepare_attention_backward_key_value>();
    return t;
  }();
  return table;
}

}  // namespace concord::cpu
