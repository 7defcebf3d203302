// Reordering operands to and from what a kernel asks for.
#include "run_kernel.hpp"

#include <cmath>

#include "../../cpu/layout.hpp"
#include "concord/core/philox.hpp"

namespace concord::test {
namespace {

BufferPtr allocate(const TensorSpec& spec, const Layout& layout) {
  return cpu_device()->allocate(layout ? layout->bytes() : spec.bytes());
}

BufferPtr reordered(const TensorSpec& spec, const Layout& from, const BufferPtr& src, const Layout& to) {
  if (same_layout(from, to)) return src;
  BufferPtr dst = allocate(spec, to);
  const auto kernel = cpu_device()->prepare_reorder(spec, from, to);
  const BufferPtr workspace = cpu_device()->allocate(kernel->workspace());
  const Operand input{src.get(), 0}, output{dst.get(), 0};
  kernel->bind({&input, 1}, {&output, 1}, {workspace.get(), 0})->enqueue();
  return dst;
}

}  // namespace

const DevicePtr& cpu_device() {
  static const DevicePtr device = Device::open("cpu");
  return device;
}

Tensor normal_tensor(const Shape& shape, std::uint32_t seed) {
  Tensor tensor(DType::f32, shape);
  const Philox stream(seed, philox_purpose("test"));
  std::uint64_t i = 0;
  for (float& value : tensor.values<float>()) {
    const double u = 1.0 - static_cast<double>(stream.uniform(2 * i)),
                 v = static_cast<double>(stream.uniform(2 * i + 1));
    value = static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v));
    ++i;
  }
  return tensor;
}

KernelRun run_kernel(const Operator& op, const std::vector<Tensor>& inputs, bool last, Precision precision,
                     bool in_place) {
  KernelRequest request{.op = &op, .inputs = {}, .input_layouts = {}, .outputs = {}, .precision = precision};
  for (const Tensor& input : inputs) {
    request.inputs.push_back(input.spec());
    const bool has_channels = input.shape().rank() >= 3 && input.shape().rank() <= 5;
    const bool is_narrow = precision == Precision::bf16 && input.dtype() == DType::f32 && input.shape().rank() >= 2;
    const DType stored = is_narrow ? DType::bf16 : input.dtype();
    request.input_layouts.push_back(last && has_channels ? cpu::channels_last(input.spec(), stored)
                                                         : cpu::row_major(input.spec(), stored));
  }
  request.outputs = op.infer(request.inputs);
  const PreparedKernel prepared = cpu_device()->prepare(request);
  std::vector<BufferPtr> src, dst;
  std::vector<Operand> src_operands, dst_operands;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const BufferPtr plain = allocate(request.inputs[i], nullptr);
    cpu_device()->write(*plain, 0, inputs[i].bytes());
    src.push_back(reordered(request.inputs[i], nullptr, plain, prepared.input_layouts[i]));
    src_operands.push_back({src.back().get(), 0});
  }
  for (std::size_t k = 0; k < request.outputs.size(); ++k) {
    dst.push_back(allocate(request.outputs[k], prepared.output_layouts[k]));
    dst_operands.push_back({dst.back().get(), 0});
  }
  const int overwritten = in_place ? prepared.overwrites : -1;
  if (overwritten >= 0) {
    dst[0] = src[static_cast<std::size_t>(overwritten)];
    dst_operands[0] = src_operands[static_cast<std::size_t>(overwritten)];
  }
  const BufferPtr workspace = cpu_device()->allocate(prepared.kernel->workspace());
  prepared.kernel->bind(src_operands, dst_operands, {workspace.get(), 0})->enqueue();
  KernelRun run{.outputs = {}, .kernel = prepared.kernel->name(), .output_layouts = {}, .overwritten = overwritten};
  for (std::size_t k = 0; k < request.outputs.size(); ++k) {
    const Layout& layout = prepared.output_layouts[k];
    const BufferPtr plain = reordered(request.outputs[k], layout, dst[k], nullptr);
    Tensor tensor(request.outputs[k]);
    cpu_device()->read(*plain, 0, tensor.bytes());
    run.outputs.push_back(std::move(tensor));
    run.output_layouts.push_back(layout ? layout->str() : "");
  }
  return run;
}

}  // namespace concord::test
