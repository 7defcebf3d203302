// CONCORD_DEBUG=limit.…: what it may say, and that a device held to less gives the same results or a clear error.
#include <boost/compute/program.hpp>
#include <cmath>

#include "concord/opencl/device.hpp"
#include "concord/opencl/driver/limits.hpp"
#include "files.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

/// The least that a full profile of OpenCL 1.2 has, and a group smaller than the specification's usual devices take.
constexpr const char* kLeast =
    "limit.work_group=64,limit.local_memory=32768,limit.compute_units=1,limit.extensions=0,limit.fp16=0,limit.fp64=0,"
    "limit.images=0,limit.subgroups=0";

DevicePtr opened_with(const DevicePtr& device, const char* limits, const char* kernels) {
  const DebugOption setting(limits), kind("kernels", kernels);
  return Device::open(device->info().id);
}

constexpr cl_ulong kLocalBytes = 4096;  // 1024 numbers
/// What the driver tells of a kernel that takes `kLocalBytes` of local memory: nothing on PoCL 5.0, twice as much on
/// Mesa's rusticl 22.3.
cl_ulong local_memory_told(const DevicePtr& device) {
  opencl::Context& context = context_of(device);
  const auto program = boost::compute::program::build_with_source(
      "__kernel void turn(__global float *x) {\n  __local float all[1024];\n  all[get_local_id(0)] = "
      "x[get_global_id(0)];\n"
      "  barrier(CLK_LOCAL_MEM_FENCE);\n  x[get_global_id(0)] = all[63 - get_local_id(0)];\n}\n",
      context.context());
  return program.create_kernel("turn").get_work_group_info<cl_ulong>(context.device(), CL_KERNEL_LOCAL_MEM_SIZE);
}

/// Kernels that choose their work-groups and tiles by the device: products, convolutions, pooling, sums, attention.
std::vector<Value> of_many_families(const std::vector<Value>& x) {
  const Value image = max_pool2d(conv2d(x[0], x[1], {.padding = {1, 1}}), {.kernel = {2, 2}});
  const Value deep = conv2d(image, x[2], {.stride = {2, 2}, .padding = {1, 1}, .groups = 4});
  const Value rows = 0.02f * reshape(deep, {2, 4, -1});
  const Value attended =
      attention(reshape(rows, {2, 1, 4, -1}), reshape(rows, {2, 1, 4, -1}), reshape(rows, {2, 1, 4, -1}));
  std::vector<Value> results{softmax(matmul(rows, transpose(rows, {0, 2, 1})), -1), sum(attended * attended)};
  for (const Value& slope : gradient(results[1], x)) results.push_back(slope);
  return results;
}

}  // namespace

TEST_CASE("limits of a device are read from text", "[opencl][limits]") {
  const opencl::DeviceLimits none;
  CHECK(opencl::device_limits() == none);
  CHECK_FALSE(none.are_lowered());
  CHECK(opencl::prologue_of(none).empty());
  const DebugOption lowered("limit.work_group=64,limit.local_memory=32768,limit.fp64=0,limit.images=1");
  const opencl::DeviceLimits limits = opencl::device_limits();
  CHECK(limits.work_group == 64);
  CHECK(limits.local_memory == 32768);
  CHECK(limits.compute_units == opencl::DeviceLimits::kNone);
  CHECK_FALSE(limits.fp64);
  CHECK(limits.images);
  CHECK(limits.extensions);
  CHECK(limits.are_lowered());
  CHECK_THAT(opencl::prologue_of(limits), contains("double") && !contains("image2d_t"));
}

TEST_CASE("a wrong text of limits is an error that names the key", "[opencl][limits]") {
  const auto message = [](const char* text) {
    const DebugOption setting(text);
    return message_of<ArgumentError>([&] { static_cast<void>(opencl::device_limits()); });
  };
  CHECK_THAT(message("limit.work_group"), contains("\"limit.work_group\" is not KEY=VALUE"));
  CHECK_THAT(message("limit.work_group=many"), contains("work_group is \"many\""));
  CHECK_THAT(message("limit.local_memory=0"), contains("local_memory is \"0\""));
  CHECK_THAT(message("limit.work_group=64,limit.fp64=no"), contains("fp64 is \"no\""));
  CHECK_THAT(message("limit.warp=32"),
             contains("no key \"limit.warp\"") && contains("work_group") && contains("subgroups"));
  const DebugOption setting("limit.warp=32");
  CHECK_THROWS_AS(Device::list(), ArgumentError);
}

TEST_CASE("a device held to limits says so, and never has more than it had", "[opencl][limits]") {
  for (const DevicePtr& device : opencl_devices()) {
    const DebugOption setting(
        "limit.work_group=32,limit.local_memory=16384,limit.compute_units=1,limit.memory=1000000000,"
        "limit.allocation=99999999999999");
    const DeviceInfo held = Device::open(device->info().id)->info();
    CHECK(held.max_work_group == 32);
    CHECK(held.local_memory == 16384);
    CHECK(held.compute_units == 1);
    CHECK(held.memory == 1000000000);
    CHECK(held.max_allocation == device->info().max_allocation);
  }
}

TEST_CASE("the least device computes what the others do", "[opencl][limits]") {
  const std::vector<Input> inputs{{normal({2, 3, 12, 14}, 1)}, {normal({8, 3, 3, 3}, 2)}, {normal({4, 2, 3, 3}, 3)}};
  for (const DevicePtr& device : opencl_devices()) {
    INFO(device->info().id);
    // Kernels that fit are refused there.
    if (local_memory_told(device) >= 2 * kLocalBytes) {
      WARN("skipped: " << device->info().name << " tells of more local memory than a kernel takes");
      continue;
    }
    const std::vector<Tensor> expected = run(device, inputs, of_many_families);
    for (const char* kernels : {"cpu", "gpu"}) {
      INFO("kernels for a " << kernels);
      const std::vector<Tensor> results = run(opened_with(device, kLeast, kernels), inputs, of_many_families);
      for (std::size_t i = 0; i < results.size(); ++i) {
        const Array got = to_array(results[i]), wanted = to_array(expected[i]);
        for (std::size_t e = 0; e < got.values.size(); ++e) {
          CHECK(std::abs(got.values[e] - wanted.values[e]) <= 1e-4 * (1 + std::abs(wanted.values[e])));
        }
      }
    }
  }
}

TEST_CASE("a kernel that takes what is forbidden does not compile", "[opencl][limits]") {
  const TemporaryFolder folder;
  std::filesystem::copy(folder_of_kernels(), folder / "kernels", std::filesystem::copy_options::recursive);
  const auto with_line = [&](const std::string& line) {
    write_file(folder / "kernels/ops/softmax_contiguous.cl",
               line + "\n" + content_of(folder_of_kernels() / "ops/softmax_contiguous.cl"));
  };
  const DebugOption kernels("kernel_dir", (folder / "kernels").string());
  for (const DevicePtr& device : opencl_devices()) {
    if (!device->info().platform.starts_with("PoCL")) continue;  // has fp64, images and inline assembly
    const auto runs = [&](const char* limits) {
      const DebugOption setting(limits);
      static_cast<void>(run(Device::open(device->info().id), {{normal({2, 3}, 1)}},
                            [](const std::vector<Value>& x) { return std::vector{softmax(x[0], -1)}; }));
    };
    for (const auto& [limits, line] : {std::pair{"limit.fp64=0", "__constant double kPlanted = 1.0;"},
                                       {"limit.images=0", "void planted(__read_only image2d_t image) {}"},
                                       {"limit.extensions=0", "void planted(void) { __asm__(\"\"); }"}}) {
      INFO(limits);
      with_line(line);
      CHECK_NOTHROW(runs("limit.fp16=0"));
      CHECK_THROWS_WITH(runs(limits), contains("building a kernel") && contains("poisoned"));
    }
  }
}

TEST_CASE("a kernel that takes more local memory than the device is held to is refused by name", "[opencl][limits]") {
  for (const DevicePtr& device : opencl_devices()) {
    if (local_memory_told(device) == 0) {
      WARN("skipped: " << device->info().name << " does not tell how much local memory a kernel takes");
      continue;
    }
    const DevicePtr held = opened_with(device, "limit.local_memory=64", "gpu");
    const auto normalised = [](const std::vector<Value>& x) { return std::vector{softmax(x[0], -1)}; };
    CHECK_THROWS_WITH(run(held, {{normal({4, 1000}, 1)}}, normalised),
                      contains("softmax") && contains("bytes of local memory") && contains("limited to 64"));
  }
}

}  // namespace concord::test
