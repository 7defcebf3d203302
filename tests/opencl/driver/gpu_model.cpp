// Generations of GPUs by what devices say, and what is planned for them.
#include "concord/opencl/driver/gpu_model.hpp"

#include <algorithm>

#include "concord/opencl/device.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/plan.hpp"
#include "opencl/opencl_test.hpp"

namespace concord::test {
namespace {

using opencl::Capability;
using opencl::dense_gemm;
using opencl::gpu_model;
using opencl::GpuFacts;
using opencl::GpuModel;
using opencl::WaveUnits;

GpuModel amd(std::string_view name) {
  return gpu_model({.vendor = "Advanced Micro Devices, Inc.", .name = name, .compute_units = 40, .megahertz = 2000});
}
GpuModel nvidia(Capability capability) {
  return gpu_model({.vendor = "NVIDIA Corporation", .capability = capability, .compute_units = 132, .megahertz = 1980});
}
GpuModel intel(std::string_view name, WaveUnits units, std::int64_t engines) {
  return gpu_model({.vendor = "Intel(R) Corporation", .name = name, .wave_units = units, .compute_units = engines});
}

/// The name of the kernel that is planned for a product on a device that plans as for `gpu`.
std::string planned_for(const char* gpu, const opencl::Gemm& gemm) {
  const DebugOption as("plan_as", gpu), kernels("kernels", "gpu"), portable("portable", "1");
  const std::vector<DevicePtr> listed = opencl_devices_with_groups_of(256);
  REQUIRE_FALSE(listed.empty());
  const DevicePtr opened = Device::open(listed.front()->info().id);
  auto& context = dynamic_cast<opencl::OpenClDevice&>(*opened).context();
  return prepare_gemm(context, gemm, "product")->name();
}
/// The same by "tiled" alone.
std::string tiled_for(const char* gpu, std::int64_t m, std::int64_t n, std::int64_t k) {
  const DebugOption implementation("gemm", "tiled");
  return planned_for(gpu, dense_gemm(m, n, k));
}

}  // namespace

TEST_CASE("a device's generation is told by its capability, processor or matrix cores", "[opencl][gpu_model]") {
  CHECK(nvidia({6, 1}).generation == "NVIDIA Pascal");
  CHECK(nvidia({7, 0}).generation == "NVIDIA Volta");
  CHECK(nvidia({7, 2}).generation == "NVIDIA Volta");
  CHECK(nvidia({7, 5}).generation == "NVIDIA Turing");
  CHECK(nvidia({8, 0}).generation == "NVIDIA Ampere, data center");
  CHECK(nvidia({8, 7}).generation == "NVIDIA Ampere");
  CHECK(nvidia({8, 9}).generation == "NVIDIA Ada");
  CHECK(nvidia({9, 0}).generation == "NVIDIA Hopper");
  CHECK(nvidia({12, 0}).generation == "NVIDIA Blackwell");
  CHECK(nvidia({5, 2}).generation == "unknown");
  CHECK(amd("gfx906:sramecc+:xnack-").generation == "AMD GCN 5");
  CHECK(amd("gfx908").generation == "AMD CDNA");
  CHECK(amd("gfx90a:sramecc+:xnack-").generation == "AMD CDNA 2");
  CHECK(amd("gfx90c").generation == "AMD GCN 5");
  CHECK(amd("gfx942").generation == "AMD CDNA 3");
  CHECK(amd("gfx1030").generation == "AMD RDNA 2");
  CHECK(amd("gfx1101").generation == "AMD RDNA 3");
  CHECK(amd("gfx1201").generation == "AMD RDNA 4");
  CHECK(amd("AMD Radeon RX 6700 XT (radeonsi, navi22, LLVM 17.0.6)").generation == "AMD RDNA 2");
  CHECK(amd("gfx803").generation == "unknown");
  CHECK(intel("Arc(TM) A770 Graphics", WaveUnits::dpas_8, 512).generation == "Intel Xe-HPG");
  CHECK(intel("Data Center GPU Max 1550", WaveUnits::dpas_16, 1024).generation == "Intel Xe-HPC");
  CHECK(intel("Arc(TM) B580 Graphics", WaveUnits::dpas_16, 160).generation == "Intel Xe2");
  CHECK(intel("UHD Graphics 770", WaveUnits::none, 32).generation == "Intel Xe-LP");
  CHECK(gpu_model({.vendor = "Intel(R) Corporation", .name = "Xeon", .is_gpu = false}).generation == "unknown");
  CHECK(gpu_model({.vendor = "GenuineIntel", .name = "pthread", .is_gpu = false}).generation == "unknown");
}

TEST_CASE("units are what takes groups", "[opencl][gpu_model]") {
  CHECK(intel("Arc(TM) A770 Graphics", WaveUnits::dpas_8, 512).units == 32);
  CHECK(intel("Arc(TM) B580 Graphics", WaveUnits::dpas_16, 160).units == 20);
  CHECK(intel("UHD Graphics", WaveUnits::none, 8).units == 1);           // less than a core
  CHECK(amd("gfx1030").local_memory == 2 * amd("gfx90a").local_memory);  // the driver counts two compute units as one
  CHECK(amd("AMD Radeon RX 6700 XT (radeonsi, navi22)").local_memory == amd("gfx90a").local_memory);
}

TEST_CASE("the H200's unit is the one that rates of tiles are of", "[opencl][gpu_model]") {
  const GpuModel hopper = nvidia({9, 0});
  CHECK(hopper.products_a_second == Approx(opencl::kMeasuredProductsASecond));
  CHECK(hopper.matrix_a_second == Approx(opencl::kMeasuredMatrixASecond));
  CHECK(hopper.bytes_a_second == Approx(4e12).epsilon(1e-4));
  const opencl::GemmTile tile{32, 32, 32, 16, 0, 1e11, 0.1};
  CHECK(resident_tile(hopper, tile, 18432).resident == 16);
  const opencl::GemmTile on_turing = resident_tile(nvidia({7, 5}), tile, 18432);
  CHECK(on_turing.resident == 3);  // 64 KiB
  CHECK(on_turing.products_a_second == Approx(0.3e11));
  CHECK(static_cast<double>(on_turing.resident) * on_turing.share == Approx(1));
  // Three products for one on matrix cores pay where these are eight times as fast, not where they are twice.
  for (const Capability consumer : {Capability{8, 6}, Capability{8, 9}, Capability{12, 0}}) {
    CHECK(nvidia(consumer).matrix_fp32_a_second / 3 < nvidia(consumer).products_a_second);
  }
  for (const Capability server : {Capability{8, 0}, Capability{9, 0}}) {
    CHECK(nvidia(server).matrix_fp32_a_second / 3 > nvidia(server).products_a_second);
  }
}

TEST_CASE("tiles are planned for the generation", "[opencl][gpu_model]") {
  if (opencl_devices_with_groups_of(256).empty()) return;
  CHECK_THAT(tiled_for("sm_90", 1024, 256, 512), !contains("shallow"));
  for (const char* const gpu : {"gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201", "xe-lp", "xe-hpg"}) {
    INFO(gpu);
    CHECK_THAT(tiled_for(gpu, 32, 32, 64), contains("32x32 shallow"));
    CHECK_THAT(tiled_for(gpu, 4096, 4096, 256), !contains("32x32"));
  }
  for (const char* const few_registers : {"xe-lp", "xe-hpg"}) {
    CHECK_THAT(tiled_for(few_registers, 4096, 4096, 256), contains("64x64 shallow"));
  }
  CHECK_THAT(tiled_for("xe-hpc", 4096, 4096, 256), contains("128x"));
  CHECK_THROWS_WITH(tiled_for("voodoo", 32, 32, 32), contains("voodoo"));
}

TEST_CASE("small results with a long k are multiplied in one launch", "[opencl][gpu_model]") {
  CHECK(planned_for("sm_90", dense_gemm(16, 32, 1000, true, true)) == "product lanes");  // both along k
  for (const char* gpu : {"sm_90", "sm_86", "gfx1030"}) {
    INFO(gpu);
    CHECK(planned_for(gpu, dense_gemm(16, 32, 500)) == "product sliced");  // of more, slow processors cut k
    CHECK_THAT(planned_for(gpu, dense_gemm(1024, 2048, 256, true, true)), contains("tiled"));
  }
}

}  // namespace concord::test
