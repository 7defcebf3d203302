// The plan of a product: tiles and cuts of k by expected time.
#include "concord/opencl/gemm/plan.hpp"

#include <limits>

#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"

namespace concord::test {
namespace {

using opencl::dense_gemm;
using opencl::Gemm;
using opencl::GemmPlan;
using opencl::GemmTile;
using opencl::GemmTiling;

/// A large tile that is fast where it fills the device, and a small one.
const std::vector<GemmTile> kTiles{{128, 128, 16, 1, 0, 2e11, 1.0}, {32, 32, 32, 4, 0, 1e11, 0.25}};
constexpr std::int64_t kUnits = 16;
const opencl::GpuModel kGpu = opencl::gpu_model({.compute_units = kUnits});

}  // namespace

TEST_CASE("a plan takes the tile and the cut of k that should take least time", "[opencl][gemm]") {
  const GemmPlan large = gemm_plan(kGpu, dense_gemm(4096, 4096, 512), kTiles);
  CHECK(large.tile == 0);
  CHECK(large.parts == 1);
  CHECK(large.part == 512);
  const double least = 4096.0 * 4096 * 512 / (kUnits * kTiles[0].products_a_second);
  CHECK(large.seconds == Approx(least));

  CHECK(gemm_plan(kGpu, dense_gemm(64, 64, 256), kTiles).tile == 1);

  const GemmPlan deep = gemm_plan(kGpu, dense_gemm(128, 128, 1 << 20), kTiles);  // a tile, so one unit would work
  CHECK(deep.parts >= kUnits);
  CHECK(deep.part % kTiles[deep.tile].k == 0);
  CHECK(deep.parts * deep.part >= 1 << 20);
  CHECK((deep.parts - 1) * deep.part < 1 << 20);
}

TEST_CASE("a cut of k has whole tiles and no empty part", "[opencl][gemm]") {
  const Gemm gemm = dense_gemm(64, 64, 150);
  const GemmTile tile{64, 64, 32, 1, 0, 1e11, 1};
  CHECK(cut_plan(gemm, tile, 3, 1)->part == 150);
  CHECK(cut_plan(gemm, tile, 3, 1)->tile == 3);
  CHECK(cut_plan(gemm, tile, 0, 3)->part == 64);
  CHECK(cut_plan(gemm, tile, 0, 3)->parts == 3);
  CHECK(cut_plan(gemm, tile, 0, 4)->parts == 3);  // of 64, 64 and 22
  CHECK_FALSE(cut_plan(gemm, tile, 0, 5).has_value());
  CHECK_FALSE(cut_plan(gemm, tile, 0, 0).has_value());
  CHECK_FALSE(cut_plan(gemm, tile, 0, std::numeric_limits<std::int64_t>::max()).has_value());
}

TEST_CASE("partial sums take at most twice the memory that a plan gives them", "[opencl][gemm]") {
  const GemmTile tile{64, 64, 32, 1, 0, 1e11, 1};
  const Gemm gemm = dense_gemm(4096, 4096, 4096);  // 64 MiB a part
  CHECK(cut_plan(gemm, tile, 0, 8)->parts == 8);
  CHECK_FALSE(cut_plan(gemm, tile, 0, 9).has_value());
  const Gemm large = dense_gemm(1 << 14, 1 << 14, 4096);  // 1 GiB a part
  CHECK(cut_plan(large, tile, 0, 1)->parts == 1);
  CHECK_FALSE(cut_plan(large, tile, 0, 2).has_value());
  for (const GemmTiling& tiling : tilings_to_try(kGpu, large, kTiles)) CHECK(tiling.parts == 1);
}

TEST_CASE("a tuner tries no cut of k twice, and none that k is too short for", "[opencl][gemm][tuning]") {
  using Parts = std::vector<std::int64_t>;
  CHECK(opencl::parts_around(1) == Parts{1, 2});
  CHECK(opencl::parts_around(4) == Parts{1, 2, 4, 8});
  CHECK(opencl::parts_around(4, 300, 64) == Parts{1, 2, 3, 5});
  CHECK(opencl::parts_around(8, 100, 64) == Parts{1, 2});
  CHECK(opencl::parts_around(512, 5, 64) == Parts{1});
}

TEST_CASE("what a tuner should try can be had by its name", "[opencl][gemm][tuning]") {
  const Gemm gemm = dense_gemm(256, 256, 4096);
  const std::vector<GemmTiling> tilings = tilings_to_try(kGpu, gemm, kTiles);
  CHECK(tilings.size() >= kTiles.size());
  for (const GemmTiling& tiling : tilings) {
    INFO(tiling.tile << " in " << tiling.parts);
    const std::optional<GemmPlan> plan = plan_of_tiling(gemm, kTiles, tiling);
    REQUIRE(plan.has_value());
    CHECK(kTiles[plan->tile].name() == tiling.tile);
  }
  CHECK_FALSE(plan_of_tiling(gemm, kTiles, {"7x7", 1}).has_value());
  CHECK_FALSE(plan_of_tiling(gemm, kTiles, {"128x128", 1000}).has_value());
}

// An A100's local memory has room for three groups with tiles of 128x64 only without the padding of rows in it.
TEST_CASE("groups on matrix cores are planned with the padding of their local memory", "[opencl][gemm]") {
  const GemmTile on_a100{128, 128, 16, 1, 8, 1.82e11, 1}, on_h200{128, 64, 16, 3, 8, 1.85e11, 0.45};
  for (const auto& [name, fastest] : {std::pair{"sm_80", on_a100}, std::pair{"sm_90", on_h200}}) {
    INFO(name);
    const DebugOption as("plan_as", name);
    for (const DevicePtr& known : opencl_devices()) {
      const DevicePtr device = Device::open(known->info().id);
      const opencl::GpuModel& gpu = context_of(device).gpu();
      Gemm gemm = dense_gemm(2048, 2048, 4096);
      gemm.batch = gpu.units;
      GemmTile tile = fastest;
      tile.products_a_second *= gpu.matrix_a_second / opencl::kMeasuredMatrixASecond;
      const double multiplying = gemm_plan(gpu, gemm, {tile}).seconds;
      CHECK(opencl::find_gemm_implementation("mma")->seconds(context_of(device), gemm) ==
            Approx(product_seconds_with_epilogue(gpu, gemm, multiplying, 1)));
    }
  }
}

TEST_CASE("a product takes no less than its operands take to be moved, and a launch", "[opencl][gemm]") {
  const Gemm thin = dense_gemm(4096, 4096, 1);
  CHECK(product_seconds(kGpu, thin, 0, 1) > opencl::kLaunchSeconds);
  CHECK(product_seconds(kGpu, thin, 0, 2) == Approx(product_seconds(kGpu, thin, 0, 1) + opencl::kLaunchSeconds));
  CHECK(product_seconds(kGpu, thin, 1, 0) == 1);
  const Expression sum({scalar::input(0) + scalar::input(1)}, 2);
  const auto with = [&](const opencl::EpilogueOperand& operand) {
    Gemm gemm = thin;
    gemm.epilogue = opencl::gemm_epilogue(sum, {{operand}});
    return product_seconds_with_epilogue(kGpu, gemm, 1, 0);
  };
  const double without = product_seconds_with_epilogue(kGpu, thin, 1, 0);
  CHECK(with({2, DType::f32, 0, 4096, 0, 1}) > without);  // a matrix
  CHECK(with({2, DType::f32, 0, 4096, 1, 0}) > without);  // a matrix whose columns are blocks
  CHECK(with({2, DType::f32, 0, 1, 0, 0}) == without);    // a bias by row
  CHECK(with({2, DType::f32, 0, 0, 0, 1}) == without);    // a bias by column
}

}  // namespace concord::test
