// Selection of a device by name, over lists of devices that this machine need not have.
#include "concord/device/selection.hpp"

#include "concord_test.hpp"
#include "setting.hpp"

namespace concord::test {
namespace {

DeviceInfo onednn() {
  DeviceInfo info;
  info.id = "cpu";
  info.backend = "onednn";
  info.name = "AMD EPYC";
  info.platform = "oneDNN 2.6.3";
  return info;
}

DeviceInfo opencl_device(int index, DeviceKind kind, const std::string& name, const std::string& platform,
                         std::uint32_t units = 16) {
  DeviceInfo info;
  info.id = "opencl:" + std::to_string(index);
  info.backend = "opencl";
  info.name = name;
  info.vendor = platform == "NVIDIA CUDA" ? "NVIDIA Corporation" : "The pocl project";
  info.platform = platform;
  info.kind = kind;
  info.compute_units = units;
  info.clock_mhz = 1000;
  return info;
}

DeviceInfo pocl(int index) {
  return opencl_device(index, DeviceKind::cpu, "pthread", "PoCL, Portable Computing Language");
}
DeviceInfo gpu(int index, const std::string& name, std::uint32_t units) {
  return opencl_device(index, DeviceKind::gpu, name, "NVIDIA CUDA", units);
}

std::string chosen(const std::vector<DeviceInfo>& infos, std::string_view selector) {
  return infos[select_device(infos, selector)].id;
}

std::string refusal(const std::vector<DeviceInfo>& infos, std::string_view selector) {
  try {
    return "chose " + chosen(infos, selector);
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("auto takes the fastest GPU, then an accelerator, then the oneDNN CPU", "[device]") {
  const DeviceInfo accelerator = opencl_device(3, DeviceKind::accelerator, "FPGA", "Other", 1);
  CHECK(chosen({onednn(), pocl(0), gpu(1, "T4", 40), gpu(2, "H200", 132)}, "auto") == "opencl:2");
  CHECK(chosen({onednn(), pocl(0), accelerator}, "auto") == "opencl:3");
  CHECK(chosen({onednn(), pocl(0)}, "auto") == "cpu");
  CHECK(chosen({pocl(0)}, "auto") == "opencl:0");
}

TEST_CASE("ranks of another launcher take the GPUs of their machine in turn", "[device]") {
  const std::vector<DeviceInfo> infos{onednn(), pocl(0), gpu(1, "H200", 132), gpu(2, "T4", 40), gpu(3, "H200", 132)};
  using Order = std::vector<std::size_t>;
  CHECK(auto_order(infos) == Order{2, 4, 3, 0});
  CHECK(auto_order_of_rank(infos, 0) == Order{2, 4, 3, 0});
  CHECK(auto_order_of_rank(infos, 1) == Order{4, 3, 2, 0});
  CHECK(auto_order_of_rank(infos, 2) == Order{3, 2, 4, 0});
  CHECK(auto_order_of_rank(infos, 4) == auto_order_of_rank(infos, 1));  // more ranks than GPUs
  CHECK(auto_order_of_rank({{onednn(), pocl(0)}}, 3) == Order{0});
  CHECK(auto_order_of_rank({}, 1).empty());
}

TEST_CASE("auto tries other devices in order of speed, PoCL not among them", "[device]") {
  const std::vector<DeviceInfo> infos{onednn(), pocl(0), gpu(1, "T4", 40), gpu(2, "H200", 132)};
  CHECK(auto_order(infos) == std::vector<std::size_t>{3, 2, 0});
}

TEST_CASE("a device is chosen by index, kind, and part of its vendor, platform or name", "[device]") {
  const std::vector<DeviceInfo> infos{onednn(), pocl(0), gpu(1, "NVIDIA H200", 132)};
  CHECK(chosen(infos, "cpu") == "cpu");
  CHECK(chosen(infos, "opencl") == "opencl:1");
  CHECK(chosen(infos, "opencl:0") == "opencl:0");
  CHECK(chosen(infos, "opencl:gpu") == "opencl:1");
  CHECK(chosen(infos, "opencl:cpu") == "opencl:0");
  CHECK(chosen(infos, "opencl:PoCL") == "opencl:0");
  CHECK(chosen(infos, "opencl:cuda") == "opencl:1");
  CHECK(chosen(infos, "OpenCL:h200") == "opencl:1");
  CHECK(chosen(infos, "opencl:nvidia corp") == "opencl:1");
}

TEST_CASE("of equal devices the first is taken, different ones are an error that lists them", "[device]") {
  const std::vector<DeviceInfo> equal{gpu(0, "H200", 132), gpu(1, "H200", 132)};
  CHECK(chosen(equal, "opencl:nvidia") == "opencl:0");
  const std::vector<DeviceInfo> different{gpu(0, "H200", 132), gpu(1, "T4", 40)};
  CHECK(chosen(different, "opencl:1") == "opencl:1");
  CHECK(chosen(different, "opencl") == "opencl:0");
  CHECK_THAT(refusal(different, "opencl:nvidia"),
             contains("several") && contains("opencl:0  H200") && contains("opencl:1  T4"));
}

TEST_CASE("a selector without a match says what there is and which packages bring drivers", "[device]") {
  CHECK_THAT(refusal({onednn(), pocl(0)}, "opencl:nvidia"),
             contains("opencl:nvidia") && contains("pthread") && contains("libnvidia-compute"));
  CHECK_THAT(refusal({onednn()}, "opencl"), contains("AMD EPYC") && contains("pocl-opencl-icd"));
  CHECK_THAT(refusal({pocl(0)}, "opencl:1"), contains("opencl:0"));
  CHECK_THAT(refusal({}, "auto"), contains("No device was found"));
  CHECK_THAT(refusal({pocl(0)}, "cpu"), contains("CONCORD_CPU=OFF"));
  CHECK_THAT(refusal({pocl(0)}, "vulkan"), contains("not a device selector") && contains("opencl:gpu"));
  CHECK_THAT(refusal({pocl(0)}, "opencl:"), contains("not a device selector"));
  CHECK_THROWS_AS(chosen({pocl(0)}, "vulkan"), ArgumentError);
  CHECK_THROWS_AS(chosen({pocl(0)}, "opencl:nvidia"), DeviceError);
  const Setting of_environment("CONCORD_DEVICE", "vulkan");
  CHECK_THAT(refusal({pocl(0)}, ""), contains("CONCORD_DEVICE: \"vulkan\" is not a device selector"));
}

TEST_CASE("what can be read as a selector does not depend on the devices there are", "[device]") {
  for (const char* selector : {"auto", "CPU", "opencl", "opencl:1", "opencl:gpu", "OpenCL:nvidia", "opencl:99x"}) {
    CHECK(selector_error(selector).empty());
  }
  for (const char* selector : {"", "opencl:", "foo:bar", "cpu:0", "1"}) {
    CHECK_THAT(selector_error(selector), contains("not a device selector"));
  }
}

TEST_CASE("the devices of this machine can be listed and opened by their ids", "[device]") {
  for (const DevicePtr& device : devices()) {
    const DeviceInfo& info = device->info();
    CAPTURE(info.id);
    CHECK(!info.name.empty());
    CHECK(info.memory > 0);
    CHECK(info.max_allocation > 0);
    CHECK(info.compute_units > 0);
    CHECK(Device::open(info.id)->info().name == info.name);
  }
}

}  // namespace concord::test
