// Gradients of the weights of several convolutions in one launch.
#include <algorithm>
#include <cmath>

#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/launch/one_memory.hpp"
#include "concord/ops/operator_group.hpp"
#include "forwarding_device.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

/// Notes the kernels of groups.
class NotingDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  [[nodiscard]] PreparedKernel prepare(const KernelRequest& request) override {
    PreparedKernel prepared = ForwardingDevice::prepare(request);
    if (dynamic_cast<const ops::OperatorGroup*>(request.op) != nullptr) groups.push_back(prepared.kernel->name());
    return prepared;
  }

  std::vector<std::string> groups;
};

double farthest(const Tensor& found, const Tensor& exact) {
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < exact.values<float>().size(); ++i) {
    largest = std::max(largest, std::abs(double{exact.values<float>()[i]}));
    error = std::max(error, std::abs(double{found.values<float>()[i]} - exact.values<float>()[i]));
  }
  return error / largest;
}

}  // namespace

TEST_CASE("gradients of the weights of several convolutions are one launch on matrix cores", "[opencl][conv]") {
  // Of several sizes, strides and taps; the fifth is alone.
  const std::vector<Input> inputs{{normal({8, 64, 40, 40}, 1)},  {normal({64, 64, 3, 3}, 2)},
                                  {normal({64, 64, 3, 3}, 3)},   {normal({128, 64, 1, 1}, 4)},
                                  {normal({136, 128, 3, 3}, 5)}, {normal({64, 136, 1, 1}, 6)}};
  const Build build = [](const std::vector<Value>& x) {
    Value y = conv2d(x[0], x[1], {.padding = {1, 1}}) * 0.05F;
    y = conv2d(y, x[2], {.stride = {2, 2}, .padding = {1, 1}}) * 0.05F;
    y = conv2d(y, x[3]) * 0.1F;
    y = conv2d(y, x[4], {.padding = {1, 1}}) * 0.03F;
    return gradient(sum(square(conv2d(y, x[5]) * 0.1F)), std::vector(x.begin() + 1, x.end()));
  };
  for (const DevicePtr& device : opencl_devices()) {
    opencl::Context& context = context_of(device);
    if (!opencl::find_gemm_implementation("tma")->device_refusal(context, Precision::bf16).empty()) continue;
    INFO(device->info().name);
    const std::vector<Tensor> exact = run(device, inputs, build);
    for (const Precision precision : {Precision::bf16, Precision::fp16}) {
      const auto noting = std::make_shared<NotingDevice>(device);
      const std::vector<Tensor> found = run(noting, inputs, build, {.precision = precision});
      const std::vector<Tensor> again = run(device, inputs, build, {.precision = precision});
      for (std::size_t i = 0; i < exact.size(); ++i) {
        INFO("weights " << i << " in " << name_of(precision));
        CHECK(farthest(found[i], exact[i]) < 0.03);
        CHECK(std::ranges::equal(again[i].values<float>(), found[i].values<float>()));
      }
      if (opencl::memory_definitions(context).empty()) continue;
      REQUIRE(noting->groups.size() == 1);
      CHECK(noting->groups[0].starts_with("gradients of weights tma"));
    }
  }
}

}  // namespace concord::test
