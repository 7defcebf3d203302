// multiplies_right(): passes what computes right, refuses what does not or fails.
#include "concord/opencl/gemm/matrix_check.hpp"

#include <boost/compute/system.hpp>

#include "concord/opencl/conv/checked_products.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord_test.hpp"

namespace concord::test {
TEST_CASE("a device that multiplies right passes the check of its matrix cores, another does not", "[opencl][gemm]") {
  if (boost::compute::system::device_count() == 0) {
    WARN("skipped: no OpenCL device");
    return;
  }
  opencl::Context context(boost::compute::system::devices().front());
  context.set_products_to_check(opencl::conv_products_to_check);
  const auto by = [&](std::string_view name, std::size_t wrong) {
    return opencl::multiplies_right(context, "the units", Precision::bf16,
                                    [&, wrong](auto& device, const auto& gemm, std::size_t i) {
                                      opencl::Gemm changed = gemm;
                                      if (i == wrong) --changed.k;  // the last products are left out
                                      return opencl::find_gemm_implementation(name)->prepare(device, changed, "check");
                                    });
  };
  constexpr std::size_t kNone = 1000;
  CHECK(by("reference", kNone));
  CHECK(by("tiled", kNone));
  for (const std::size_t wrong : {0, 1, 4, 5, 6, 7, 10, 11}) {
    INFO("product " << wrong);
    CHECK_FALSE(by("reference", wrong));
  }
  CHECK_FALSE(opencl::multiplies_right(context, "the units", Precision::bf16, [](auto&, const auto&, std::size_t) {
    throw DeviceError("no such instruction");
    return std::unique_ptr<Kernel>();
  }));
}

}  // namespace concord::test
