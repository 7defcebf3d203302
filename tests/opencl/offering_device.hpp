// Only products begin the channels-last layout, where there are the units for it; here a device offers it to every
// kernel.
#pragma once

#include <algorithm>
#include <set>
#include <string>

#include "concord/opencl/formula/channels_last.hpp"
#include "forwarding_device.hpp"

namespace concord::test {

/// Notes which kernels take images channels-last, and tells every kernel, if it is to offer that, that its images lie
/// so (compile reorders what does not).
class OfferingDevice final : public ForwardingDevice {
 public:
  OfferingDevice(DevicePtr device, std::set<std::string>& taken, bool offers = true)
      : ForwardingDevice(std::move(device)), taken_(taken), offers_(offers) {}
  [[nodiscard]] PreparedKernel prepare(const KernelRequest& request) override {
    KernelRequest offered = request;
    for (std::size_t i = 0; i < request.inputs.size(); ++i) {
      const TensorSpec& spec = request.inputs[i];
      const bool is_image = spec.shape.rank() == 4 && spec.shape[2] > 1 && !request.input_layouts[i];
      if (offers_ && is_image && spec.dtype == DType::f32) {
        offered.input_layouts[i] = opencl::channels_last(spec, opencl::storage_number(request.precision));
      }
    }
    PreparedKernel kernel = ForwardingDevice::prepare(offered);
    if (std::ranges::any_of(kernel.input_layouts, [](const Layout& layout) { return layout != nullptr; })) {
      taken_.insert(kernel.kernel->name());
    }
    return kernel;
  }

 private:
  std::set<std::string>& taken_;
  bool offers_;
};

}  // namespace concord::test
