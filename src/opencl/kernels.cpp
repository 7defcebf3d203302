// The kernel table of the backend, and the dispatch of fused operators on their base.
#include "concord/opencl/kernels.hpp"

#include <algorithm>
#include <array>

#include "concord/core/check.hpp"
#include "concord/opencl/conv.hpp"

namespace concord::opencl {
namespace {

PreparedKernel prepare_fused(Context& context, const ops::Fused& op, const KernelRequest& request) {
  const Epilogue epilogue{op.epilogue(), op.base_inputs()};
  if (const auto* matmul = dynamic_cast<const ops::Matmul*>(op.base().get())) {
    return prepare_matmul(context, *matmul, request, epilogue);
  }
  if (const auto* conv = dynamic_cast<const ops::Conv*>(op.base().get())) {
    return prepare_conv(context, *conv, request, epilogue);
  }
  if (const auto* data = dynamic_cast<const ops::ConvBackwardData*>(op.base().get())) {
    return prepare_conv_backward_data(context, *data, request, epilogue);
  }
  if (const auto* norm = dynamic_cast<const ops::BatchNorm*>(op.base().get())) {
    return prepare_batch_norm(context, *norm, request, epilogue);
  }
  throw NotSupported(fmt::format("no kernel applies an expression to the result of {}", op.base()->name()));
}

KernelTable<Context> make_table() {
  KernelTable<Context> table;
  // Four functions are overloaded; the operator's type picks the one for the operator alone.
  table.add<ops::Matmul, static_cast<KernelTable<Context>::Prepare<ops::Matmul>>(prepare_matmul)>();
  table.add<ops::Conv, static_cast<KernelTable<Context>::Prepare<ops::Conv>>(prepare_conv)>();
  table.add<ops::ConvBackwardData,
            static_cast<KernelTable<Context>::Prepare<ops::ConvBackwardData>>(prepare_conv_backward_data)>();
  table.add<ops::ConvBackwardWeights, prepare_conv_backward_weights>();
  table.add<ops::MaxPool, prepare_max_pool>();
  table.add<ops::MaxPoolBackward, prepare_max_pool_backward>();
  table.add<ops::AvgPool, prepare_avg_pool>();
  table.add<ops::AvgPoolBackward, prepare_avg_pool_backward>();
  table.add<ops::MaxUnpool, prepare_max_unpool>();
  table.add<ops::MaxUnpoolBackward, prepare_max_unpool_backward>();
  table.add<ops::AllFinite, prepare_all_finite>();
  table.add<ops::Reduce, prepare_reduce>();
  table.add<ops::Softmax, prepare_softmax>();
  table.add<ops::SoftmaxBackward, prepare_softmax_backward>();
  table.add<ops::CrossEntropy, prepare_cross_entropy>();
  table.add<ops::Ctc, prepare_ctc>();
  table.add<ops::BatchNorm, static_cast<KernelTable<Context>::Prepare<ops::BatchNorm>>(prepare_batch_norm)>();
  table.add<ops::BatchNormBackward, prepare_batch_norm_backward>();
  table.add<ops::Pointwise, prepare_pointwise>();
  table.add<ops::PointwiseGroup, prepare_pointwise_group>();
  table.add<ops::Transpose, prepare_transpose>();
  table.add<ops::Slice, prepare_slice>();
  table.add<ops::Pad, prepare_pad>();
  table.add<ops::Concat, prepare_concat>();
  table.add<ops::Random, prepare_random>();
  table.add<ops::Gather, prepare_gather>();
  table.add<ops::ScatterAdd, prepare_scatter_add>();
  table.add<ops::GatherAlong, prepare_gather_along>();
  table.add<ops::ScatterAddAlong, prepare_scatter_add_along>();
  table.add<ops::RowNorm, prepare_row_norm>();
  table.add<ops::RowNormBackward, prepare_row_norm_backward>();
  table.add<ops::Resample, prepare_resample>();
  table.add<ops::CumSum, prepare_cumsum>();
  table.add<ops::TopK, prepare_top_k>();
  table.add<ops::Recurrent, prepare_recurrent>();
  table.add<ops::RecurrentBackward, prepare_recurrent_backward>();
  table.add<ops::Attention, prepare_attention>();
  table.add<ops::AttentionBackwardQuery, prepare_attention_backward_query>();
  table.add<ops::AttentionBackwardKeyValue, prepare_attention_backward_key_value>();
  table.add<ops::Fused, prepare_fused>();
  return table;
}

/// Whether NVIDIA's matrix units would compute it, given its first two inputs.
bool is_product(const Operator& op, std::span<const TensorSpec> inputs) {
  if (dynamic_cast<const ops::Matmul*>(&op) != nullptr) return true;
  const auto* conv = dynamic_cast<const ops::ConvFamily*>(&op);
  return conv != nullptr && !conv_is_depthwise(conv->sizes(inputs.first(2)));
}

/// Whether a product's epilogue would take longer than a launch of its own: the few work-items of a product on matrix
/// units wait for long chains of instructions (on an H200 the gradient of gelu takes 16 ps an element there; gelu by
/// itself, reading and writing included, 2.3).
bool takes_long(const Expression& epilogue, const TensorSpec& output) {
  using F = ScalarFunction;
  constexpr std::int64_t kLeastElements = std::int64_t{1} << 20;
  constexpr std::array kShort{F::input,     F::constant, F::coordinate, F::add,     F::subtract,
                              F::multiply,  F::divide,   F::negate,     F::less,    F::equal,
                              F::select,    F::abs,      F::less_equal, F::minimum, F::maximum,
                              F::is_finite, F::floor,    F::sqrt,       F::rsqrt};
  return output.shape.elements() >= kLeastElements &&
         !std::ranges::all_of(epilogue.code(), [&](const Expression::Instruction& instruction) {
           return std::ranges::find(kShort, instruction.function) != kShort.end();
         });
}

}  // namespace

const KernelTable<Context>& kernel_table() {
  static const KernelTable<Context> table = make_table();
  return table;
}

bool supports_epilogue(const Context& context, const Operator& op, std::span<const TensorSpec> inputs,
                       const TensorSpec& output, const Expression& epilogue, std::span<const TensorSpec> extra) {
  if (context.limits().is_nvidia && is_product(op, inputs) && takes_long(epilogue, output)) return false;
  if (const auto* matmul = dynamic_cast<const ops::Matmul*>(&op)) {
    return matmul_accepts(*matmul, inputs, output, epilogue, extra);
  }
  if (const auto* conv = dynamic_cast<const ops::Conv*>(&op)) {
    return conv_accepts(*conv, inputs, output, epilogue, extra);
  }
  if (const auto* data = dynamic_cast<const ops::ConvBackwardData*>(&op)) {
    return conv_backward_data_accepts(*data, inputs, output, epilogue, extra);
  }
  if (const auto* norm = dynamic_cast<const ops::BatchNorm*>(&op)) {
    return batch_norm_accepts(*norm, inputs, output, epilogue, extra);
  }
  return false;
}

}  // namespace concord::opencl
