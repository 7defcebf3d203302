// The kernels of OpenClDevice: the table of all families, and the epilogues that they may fuse.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "concord/opencl/conv/depthwise.hpp"
#include "concord/opencl/conv/joined_gradients.hpp"
#include "concord/opencl/device.hpp"
#include "concord/opencl/driver/status.hpp"
#include "concord/opencl/formula/channel_columns.hpp"
#include "concord/opencl/formula/joined_kernel.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/gemm/channels_last.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/sequence.hpp"
#include "concord/opencl/ops/joined_products.hpp"
#include "concord/ops/attention.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/fused.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/prologued.hpp"

namespace concord::opencl {
namespace {

/// Every operator of the backend.
const Kernels& kernel_table();

/// The base reads images or tokens of its own, so columns are reordered for it; the epilogue reads them where they lie.
PreparedKernel prepare_fused(Context& context, const ops::Fused& op, const KernelRequest& request) {
  return kernel_table().prepare_fused(context, *op.base(), without_columns(request, op.base_inputs()),
                                      {op.epilogue(), op.base_inputs()});
}

PreparedKernel prepare_prologued(Context& context, const ops::Prologued& op, const KernelRequest& request) {
  return kernel_table().prepare_prologued(context, op, request);
}

/// The operators of a group, one behind the other.
PreparedKernel prepare_in_sequence(Context& context, const ops::OperatorGroup& group, const KernelRequest& request) {
  PreparedKernel result;
  std::vector<SequenceKernel::Member> members;
  for (const KernelRequest& one : requests_of(group, request)) {
    PreparedKernel prepared = kernel_table().prepare(context, one);
    const auto append = [](std::vector<Layout>& all, const std::vector<Layout>& more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    append(result.input_layouts, prepared.input_layouts);
    append(result.output_layouts, prepared.output_layouts);
    members.push_back({std::move(prepared.kernel), one.inputs.size()});
  }
  result.kernel = std::make_unique<SequenceKernel>(std::move(members));
  return result;
}

PreparedKernel prepare_operator_group(Context& context, const ops::OperatorGroup& group, const KernelRequest& request) {
  std::optional<PreparedKernel> together = prepare_product_group(context, group, request);
  if (!together) together = prepare_weights_gradients(context, group, request);
  return together ? *std::move(together) : prepare_in_sequence(context, group, request);
}

Kernels make_table() {
  Kernels kernels;
  add_families(kernels);
  kernels.add<ops::Fused, prepare_fused>();
  kernels.add<ops::Prologued, prepare_prologued>();
  kernels.add<ops::OperatorGroup, prepare_operator_group>();
  return kernels;
}

const Kernels& kernel_table() {
  static const Kernels table = make_table();
  return table;
}

/// Whether kernels of the operator read columns of channels where they lie.
bool reads_columns(const Operator& op) {
  return dynamic_cast<const ops::Pointwise*>(&op) != nullptr || dynamic_cast<const ops::Fused*>(&op) != nullptr ||
         dynamic_cast<const ops::Attention*>(&op) != nullptr ||
         dynamic_cast<const ops::AttentionBackwardQuery*>(&op) != nullptr ||
         dynamic_cast<const ops::AttentionBackwardKeyValue*>(&op) != nullptr;
}

/// Whether NVIDIA's matrix cores would compute it, given its first two inputs.
bool is_product(const Operator& op, std::span<const TensorSpec> inputs) {
  if (dynamic_cast<const ops::Matmul*>(&op) != nullptr) return true;
  const auto* conv = dynamic_cast<const ops::ConvFamily*>(&op);
  return conv != nullptr && !conv_is_depthwise(conv->sizes(inputs.first(2)));
}

/// Whether the fused epilogue of a GEMM would take longer than a launch of its own: a GEMM on matrix cores has few
/// work-items, which wait for long chains of instructions. On an H200 the fused gradient of gelu takes 16 ps per
/// element in fp32; the unfused gelu, with its reads and writes, takes 2.3 ps. Functions whose results are rounded to
/// 16 bits (CONCORD_SHORT_RESULTS) are short.
bool slows_epilogue(const Expression& epilogue, const TensorSpec& output, bool is_rounded) {
  using F = ScalarFunction;
  constexpr std::int64_t kLeastElements = std::int64_t{1} << 20;
  constexpr std::array kShort{F::input,     F::constant, F::coordinate, F::add,     F::subtract,
                              F::multiply,  F::divide,   F::negate,     F::less,    F::equal,
                              F::select,    F::abs,      F::less_equal, F::minimum, F::maximum,
                              F::is_finite, F::floor,    F::rint,       F::sqrt,    F::rsqrt};
  constexpr std::array kShortWhereRounded{F::exp,        F::sigmoid,   F::silu,           F::gelu,
                                          F::gelu_slope, F::gelu_tanh, F::gelu_tanh_slope};
  const auto is_short = [&](const Expression::Instruction& instruction) {
    return std::ranges::find(kShort, instruction.function) != kShort.end() ||
           (is_rounded && std::ranges::find(kShortWhereRounded, instruction.function) != kShortWhereRounded.end());
  };
  return output.shape.elements() >= kLeastElements && !std::ranges::all_of(epilogue.code(), is_short);
}

}  // namespace

PreparedKernel OpenClDevice::prepare(const KernelRequest& request) {
  const Use use(*this);
  return translated(info_.name, fmt::format("preparing {}", request.op->name()), [&] {
    PreparedKernel prepared =
        kernel_table().prepare(*context_, reads_columns(*request.op) ? request : without_columns(request));
    context_->alternatives().count(context_->limits().is_cpu ? alternative::kForCpus : alternative::kForGpus);
    return prepared;
  });
}

bool OpenClDevice::supports_epilogue(const Operator& op, std::span<const TensorSpec> inputs, const TensorSpec& output,
                                     const Expression& epilogue, std::span<const TensorSpec> extra,
                                     Precision precision) const {
  const bool is_rounded = storage_refusal(*context_, precision).empty();
  if (context_->limits().is_nvidia && is_product(op, inputs) && slows_epilogue(epilogue, output, is_rounded)) {
    return false;
  }
  return kernel_table().supports_epilogue(op, inputs, output, epilogue, extra);
}

// The kernels apply prologues to values in 16 bits.
bool OpenClDevice::supports_prologue(const Operator& op, std::span<const TensorSpec> inputs, const Expression& prologue,
                                     std::span<const TensorSpec> extra, Precision precision) const {
  return storage_refusal(*context_, precision).empty() && kernel_table().supports_prologue(op, inputs, prologue, extra);
}

}  // namespace concord::opencl
