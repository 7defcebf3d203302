// Numbers below the normal ones on processors: zero while a program runs, themselves again for the caller.
#include <limits>

#include "concord/ops/pointwise.hpp"
#include "ops/op_test.hpp"

namespace concord::test {

TEST_CASE("processors take subnormal numbers for zero", "[ops][subnormals]") {
  const Shape shape{100000};  // work for several threads
  const double subnormal = std::numeric_limits<float>::min() / 4;
  Array values(shape, std::vector<double>(100000, subnormal));
  values.values[7] = 1.5;
  for (const DevicePtr& device : devices()) {
    if (device->info().kind != DeviceKind::cpu) continue;
    CAPTURE(device->info().id);
    const std::vector<Tensor> results =
        run(device, {{values}}, [](const std::vector<Value>& in) { return std::vector{2.0F * in[0]}; });
    const std::span<const float> doubled = results[0].values<float>();
    CHECK(doubled[7] == 3.0F);
    for (const std::size_t place : {std::size_t{0}, doubled.size() - 1}) {
      // In OpenCL C a compiler may do so or not.
      const bool is_kept = device->info().backend == "opencl" && doubled[place] == static_cast<float>(2 * subnormal);
      CHECK((is_kept || doubled[place] == 0.0F));
    }
    const volatile float own = static_cast<float>(subnormal);
    CHECK(own * 2.0F > 0.0F);
  }
}

}  // namespace concord::test
