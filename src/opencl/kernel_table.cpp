// The kernels of OpenClDevice: the table of all families, and the epilogues that they may fuse.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "concord/opencl/conv/depthwise.hpp"
#include "concord/opencl/device.hpp"
#include "concord/opencl/driver/status.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/fused.hpp"
#include "concord/ops/matmul.hpp"

namespace concord::opencl {
namespace {

/// Every operator of the backend.
const Kernels& kernel_table();

PreparedKernel prepare_fused(Context& context, const ops::Fused& op, const KernelRequest& request) {
  return kernel_table().prepare_fused(context, *op.base(), request, {op.epilogue(), op.base_inputs()});
}

Kernels make_table() {
  Kernels kernels;
  add_families(kernels);
  kernels.add<ops::Fused, prepare_fused>();
  return kernels;
}

const Kernels& kernel_table() {
  static const Kernels table = make_table();
  return table;
}

/// Whether NVIDIA's matrix cores would compute it, given its first two inputs.
bool is_product(const Operator& op, std::span<const TensorSpec> inputs) {
  if (dynamic_cast<const ops::Matmul*>(&op) != nullptr) return true;
  const auto* conv = dynamic_cast<const ops::ConvFamily*>(&op);
  return conv != nullptr && !conv_is_depthwise(conv->sizes(inputs.first(2)));
}

/// Whether the fused epilogue of a GEMM would take longer than a launch of its own: a GEMM on matrix cores has few
/// work-items, which wait for long chains of instructions. On an H200 the fused gradient of gelu takes 16 ps per
/// element; the unfused gelu, with its reads and writes, takes 2.3 ps.
bool slows_epilogue(const Expression& epilogue, const TensorSpec& output) {
  using F = ScalarFunction;
  constexpr std::int64_t kLeastElements = std::int64_t{1} << 20;
  constexpr std::array kShort{F::input,     F::constant, F::coordinate, F::add,     F::subtract,
                              F::multiply,  F::divide,   F::negate,     F::less,    F::equal,
                              F::select,    F::abs,      F::less_equal, F::minimum, F::maximum,
                              F::is_finite, F::floor,    F::rint,       F::sqrt,    F::rsqrt};
  return output.shape.elements() >= kLeastElements &&
         !std::ranges::all_of(epilogue.code(), [&](const Expression::Instruction& instruction) {
           return std::ranges::find(kShort, instruction.function) != kShort.end();
         });
}

}  // namespace

PreparedKernel OpenClDevice::prepare(const KernelRequest& request) {
  const Use use(*this);
  return translated(info_.name, fmt::format("preparing {}", request.op->name()), [&] {
    PreparedKernel prepared = kernel_table().prepare(*context_, request);
    context_->alternatives().count(context_->limits().is_cpu ? alternative::kForCpus : alternative::kForGpus);
    return prepared;
  });
}

bool OpenClDevice::supports_epilogue(const Operator& op, std::span<const TensorSpec> inputs, const TensorSpec& output,
                                     const Expression& epilogue, std::span<const TensorSpec> extra) const {
  if (context_->limits().is_nvidia && is_product(op, inputs) && slows_epilogue(epilogue, output)) return false;
  return kernel_table().supports_epilogue(op, inputs, output, epilogue, extra);
}

}  // namespace concord::opencl
