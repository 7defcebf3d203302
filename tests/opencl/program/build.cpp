// What stands between a kernel's source and its program: marked instructions, and how many programs are built at once.
#include <cstdlib>

#include "concord/core/error.hpp"
#include "concord/opencl/driver/discovery.hpp"
#include "concord/opencl/program/build.hpp"
#include "concord_test.hpp"

namespace concord::test {

TEST_CASE("a source's kernels are named", "[opencl]") {
  CHECK(opencl::kernels_in("// none\n") == "a kernel");
  CHECK(
      opencl::kernels_in("#define A\n__kernel void first(int a) {}\nvoid helper();\n__kernel __attribute__((reqd_work_"
                         "group_size(T, 1, 1))) void second(\n    int b) {}\n") == "first, second");
}

TEST_CASE("marked instructions are switched on for the architecture that has them", "[opencl]") {
  const auto switched = [](const std::string& ptx) { return opencl::with_marked_instructions(ptx, "a device"); };
  CHECK(switched("// by a compiler\n.version 8.5\n.target sm_90, texmode_independent\n.address_size 64\n"
                 "// no mark\n\t//@ wgmma.fence.sync.aligned;\n\t//@wgmma.wait_group.sync.aligned 0;\n// sm_90\n") ==
        "// by a compiler\n.version 8.5\n.target sm_90a, texmode_independent\n.address_size 64\n"
        "// no mark\n\t    wgmma.fence.sync.aligned;\n\t   wgmma.wait_group.sync.aligned 0;\n// sm_90\n");
  // Another architecture, one that has the instructions, and nothing after it.
  CHECK(switched(".version 8.5\n.target sm_80\n//@ sm_90\n") == ".version 8.5\n.target sm_80\n    sm_90\n");
  CHECK(switched(".version 8.5\n.target sm_90a\n//@x") == ".version 8.5\n.target sm_90a\n   x");
  CHECK(switched(".version 8.5\n.target sm_90") == ".version 8.5\n.target sm_90a");
  // The assembler needs the registers that a thread begins with to change their number.
  CHECK(switched(".version 8.5\n.target sm_90\n.entry a()\n.reqntid 384, 1, 1\n{\n//@setmaxnreg.dec\n}") ==
        ".version 8.5\n.target sm_90a\n.entry a()\n.reqntid 384, 1, 1\n.minnctapersm 1\n{\n   setmaxnreg.dec\n}");
  // The binary that the driver gives may end with a zero.
  CHECK(switched(std::string(".version 8.5\n.target sm_90\n") + '\0').back() == '\0');
}

TEST_CASE("marked instructions in a binary that is no PTX are an error", "[opencl]") {
  for (const std::string binary : {"",
                                   "\x7f"
                                   "ELF //@ .target",
                                   ".target sm_90 .version", "//@"}) {
    CHECK_THROWS_AS(opencl::with_marked_instructions(binary, "a device"), DeviceError);
  }
  CHECK_THROWS_WITH(opencl::with_marked_instructions("x", "a device"), contains("a device") && contains("//@"));
}

TEST_CASE("a kernel with marked instructions is built where there is PTX, and refused elsewhere", "[opencl]") {
  for (const boost::compute::device& device : opencl::enumerate_devices()) {
    CAPTURE(device.name());
    const std::string source = "//@ marks an instruction\n__kernel void twice(__global int* p) { *p *= 2; }";
    const boost::compute::context context(device);
    if (device.vendor().find("NVIDIA") != std::string::npos) {
      CHECK(opencl::build_source({context, device, device.name()}, source, "").get() != nullptr);
    } else {
      CHECK_THROWS_AS(opencl::build_source({context, device, device.name()}, source, ""), DeviceError);
    }
  }
}

TEST_CASE("programs are built at once where the compiler is known to stand it", "[opencl]") {
  CHECK(opencl::builds_in_parallel("NVIDIA Corporation", "OpenCL 3.0 CUDA 12.8.90"));
  CHECK(opencl::builds_in_parallel("Advanced Micro Devices, Inc.", "OpenCL 2.1 AMD-APP (3590.0)"));
  CHECK(opencl::builds_in_parallel("Intel(R) Corporation", "OpenCL 3.0"));
  CHECK(opencl::builds_in_parallel("The pocl project", "OpenCL 3.0 PoCL 3.1+debian  Linux"));
  CHECK(opencl::builds_in_parallel("The pocl project", "OpenCL 3.0 PoCL 10.0"));
  CHECK_FALSE(opencl::builds_in_parallel("The pocl project", "OpenCL 2.0 pocl 1.8"));
  CHECK_FALSE(opencl::builds_in_parallel("The pocl project", "OpenCL 1.2 PoCL 2.2"));
  CHECK_FALSE(opencl::builds_in_parallel("University of Bristol", "OpenCL 1.2 Oclgrind 21.10"));
  CHECK_FALSE(opencl::builds_in_parallel("Mesa/X.org", "OpenCL 3.0 "));
}

TEST_CASE("programs are left to PoCL's own cache, and to no other's", "[opencl]") {
  CHECK(opencl::keeps_programs_itself("OpenCL 3.0 PoCL 3.1+debian  Linux"));
  CHECK(opencl::keeps_programs_itself("OpenCL 1.2 PoCL 2.2"));
  CHECK_FALSE(opencl::keeps_programs_itself("OpenCL 3.0 CUDA 12.8.90"));
  CHECK_FALSE(opencl::keeps_programs_itself("OpenCL 1.2 Oclgrind 21.10"));
}

TEST_CASE("CONCORD_BUILD_THREADS is a number or an error", "[opencl]") {
  const auto found = opencl::enumerate_devices();
  if (found.empty()) {
    WARN("skipped: no OpenCL device");
    return;
  }
  const char* const before = std::getenv("CONCORD_BUILD_THREADS");
  const std::string kept = before == nullptr ? "" : before;
  setenv("CONCORD_BUILD_THREADS", "3", 1);
  CHECK(opencl::build_threads(found.front()) == 3);
  for (const char* wrong : {"-1", "65", "4 ", "many"}) {
    setenv("CONCORD_BUILD_THREADS", wrong, 1);
    CHECK_THROWS_WITH(opencl::build_threads(found.front()), contains(wrong) && contains("CONCORD_BUILD_THREADS"));
  }
  if (kept.empty()) {
    unsetenv("CONCORD_BUILD_THREADS");
  } else {
    setenv("CONCORD_BUILD_THREADS", kept.c_str(), 1);
  }
}

}  // namespace concord::test
