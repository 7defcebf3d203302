// What a compute capability says of an NVIDIA GPU, and what other devices say.
#include "concord/opencl/driver/capability.hpp"

#include "concord/opencl/device.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"

namespace concord::test {

using opencl::Capability;

TEST_CASE("a compute capability tells matrix cores and local memory", "[opencl]") {
  CHECK_FALSE(Capability{}.has_matrix_cores());
  CHECK_FALSE(Capability{7, 5}.has_matrix_cores());
  CHECK(Capability{8, 6}.has_matrix_cores());
  CHECK_FALSE(Capability{8, 9}.is_hopper());
  CHECK(Capability{9, 0}.is_hopper());
  CHECK_FALSE(Capability{10, 0}.is_hopper());

  constexpr std::size_t kKiB = 1024, kReported = 48 * kKiB;
  CHECK(opencl::declarable_local_memory({}, 12345) == 12345);
  CHECK(opencl::declarable_local_memory({7, 5}, kReported) == kReported);
  CHECK(opencl::declarable_local_memory({8, 0}, kReported) == 163 * kKiB);
  CHECK(opencl::declarable_local_memory({8, 6}, kReported) == 99 * kKiB);
  CHECK(opencl::declarable_local_memory({9, 0}, kReported) == 227 * kKiB);
  CHECK(opencl::declarable_local_memory({12, 0}, kReported) == 99 * kKiB);
}

TEST_CASE("a context knows its device's units, and none where the device is held to plain OpenCL C", "[opencl]") {
  const DebugOption plain("portable", "1");
  for (const DevicePtr& device : opencl_devices()) {
    const opencl::Context& whole = context_of(device);
    if (device->info().vendor.find("NVIDIA") == std::string::npos) CHECK(whole.capability().major == 0);
    const DevicePtr held = Device::open(device->info().id);
    const opencl::Context& context = dynamic_cast<opencl::OpenClDevice&>(*held).context();
    CHECK(context.capability().major == 0);
    CHECK(context.wave_units() == opencl::WaveUnits::none);
    CHECK(held->info().precisions == std::vector<std::string>{"fp32"});
  }
}

}  // namespace concord::test
