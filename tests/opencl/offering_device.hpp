// Only products begin the channels-last layout, where there are the units for it; here a device offers it to every
// kernel.
#pragma once

#include <algorithm>
#include <set>
#include <string>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "forwarding_device.hpp"

namespace concord::test {

/// Whether kernels of 16 bits apply it. Devices that do not store values so do not ask for it.
[[nodiscard]] inline bool kernels_support_prologue(const Operator& op, std::span<const TensorSpec> op_inputs,
                                                   const Expression& prologue, std::span<const TensorSpec> extra) {
  static const opencl::Kernels kernels = [] {
    opencl::Kernels table;
    opencl::add_families(table);
    return table;
  }();
  return kernels.supports_prologue(op, op_inputs, prologue, extra);
}

/// Notes which kernels take values channels-last, and tells every kernel, if it is to offer that, that its images, or
/// its tokens, lie so (compile reorders what does not).
class OfferingDevice final : public ForwardingDevice {
 public:
  OfferingDevice(DevicePtr device, std::set<std::string>& taken, bool offers = true,
                 opencl::ChannelAxis axis = opencl::ChannelAxis::second)
      : ForwardingDevice(std::move(device)), taken_(taken), offers_(offers), axis_(axis) {}
  [[nodiscard]] PreparedKernel prepare(const KernelRequest& request) override {
    KernelRequest offered = request;
    for (std::size_t i = 0; i < request.inputs.size(); ++i) {
      const TensorSpec& spec = request.inputs[i];
      if (!offers_ || request.input_layouts[i] || spec.dtype != DType::f32 || !is_offered(spec.shape)) continue;
      offered.input_layouts[i] = opencl::channels_last(spec, opencl::storage_number(request.precision), axis_);
    }
    PreparedKernel kernel = ForwardingDevice::prepare(offered);
    if (std::ranges::any_of(kernel.input_layouts, [](const Layout& layout) { return layout != nullptr; })) {
      taken_.insert(kernel.kernel->name());
    }
    return kernel;
  }
  [[nodiscard]] bool supports_prologue(const Operator& op, std::span<const TensorSpec> op_inputs,
                                       const Expression& prologue, std::span<const TensorSpec> extra,
                                       Precision precision) const override {
    if (!offers_) return ForwardingDevice::supports_prologue(op, op_inputs, prologue, extra, precision);
    return kernels_support_prologue(op, op_inputs, prologue, extra);
  }

 private:
  [[nodiscard]] bool is_offered(const Shape& shape) const {
    if (axis_ == opencl::ChannelAxis::last) return shape.rank() >= 2 && shape[0] > 1;
    return shape.rank() == 4 && shape[2] > 1;
  }

  std::set<std::string>& taken_;
  bool offers_;
  opencl::ChannelAxis axis_;
};

}  // namespace concord::test
