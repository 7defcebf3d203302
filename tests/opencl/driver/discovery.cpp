// What is asked of an OpenCL device before it is taken.
#include "concord/opencl/driver/discovery.hpp"

#include "concord_test.hpp"

namespace concord::test {

TEST_CASE("devices older than OpenCL 1.2 are left out", "[opencl]") {
  for (const char* old : {"OpenCL 1.0 ", "OpenCL 1.1 Mesa 22.3.6", "OpenCL 0.9"}) CHECK(opencl::is_too_old(old));
  for (const char* fits :
       {"OpenCL 1.2 CUDA", "OpenCL 2.0 AMD-APP (3513.0)", "OpenCL 3.0 PoCL 3.1+debian", "OpenCL 10.1"}) {
    CHECK_FALSE(opencl::is_too_old(fits));
  }
  CHECK_FALSE(opencl::is_too_old("a simulator"));
}

}  // namespace concord::test
