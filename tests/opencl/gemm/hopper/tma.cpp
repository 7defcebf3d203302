// Products from operands that the copy engine brings, with k cut: parts that the launch itself adds up, and parts that
// another launch does.
#include <cmath>
#include <utility>

#include "concord/opencl/conv/conv.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/tuning/table.hpp"
#include "concord/opencl/gemm/tuning/trial.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"

namespace concord::test {
namespace {

using opencl::Gemm;
using opencl::GemmImplementation;

/// Tries every tile with k in `parts` parts; returns how many of the kernels add up their parts themselves.
int try_tiles(const DevicePtr& device, const GemmImplementation& one, const Gemm& gemm, std::int64_t parts) {
  opencl::Context& context = context_of(device);
  opencl::ProductTrial trial(*device, context, gemm);
  int joined = 0;
  std::string last;
  for (const opencl::GemmTiling& known : one.tilings(context, gemm)) {
    if (std::exchange(last, known.tile) == known.tile) continue;
    const std::unique_ptr<Kernel> kernel = one.prepare_tiling(context, gemm, {known.tile, parts}, "product");
    if (kernel == nullptr) continue;
    CAPTURE(kernel->name());
    joined += kernel->name().find("joined") != std::string::npos ? 1 : 0;
    for (int run = 0; run < 3; ++run) CHECK(trial.run(*kernel, INFINITY).fault.empty());
  }
  return joined;
}

}  // namespace

TEST_CASE("products whose k is cut: by a launch whose groups meet where all are on the device at once",
          "[opencl][gemm]") {
  for (const DevicePtr& device : opencl_devices()) {
    for (const char* const name : {"tma", "scaled"}) {
      const GemmImplementation& one = *opencl::find_gemm_implementation(name);
      for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
        Gemm few = opencl::dense_gemm(200, 136, 1024), many = opencl::dense_gemm(4096, 3072, 256);
        few.precision = many.precision = precision;
        if (!opencl::gemm_refusal(one, context_of(device), few).empty()) continue;
        CAPTURE(device->info().name, name, name_of(precision));
        CHECK(try_tiles(device, one, few, 5) > 0);
        CHECK(try_tiles(device, one, many, 1) == 0);  // more tiles than groups are given
        CHECK(try_tiles(device, one, many, 3) == 0);
      }
    }
  }
}

TEST_CASE("filters of few channels, padded to the shallowest tile, are offered no deeper one", "[opencl][gemm]") {
  Gemm gemm = opencl::conv_forward_gemm(
      ops::conv_sizes({4, 3, 16, 16}, {64, 3, 3, 3}, {.padding = {0, 1, 1}, .padding_after = {0, 1, 1}}));
  gemm.precision = Precision::bf16;
  gemm.b.is_channels_last = gemm.c.is_channels_last = true;
  gemm.a.filter_channels = 32;
  for (const DevicePtr& device : opencl_devices()) {
    const auto tilings = opencl::find_gemm_implementation("tma")->tilings(context_of(device), gemm);
    CHECK_FALSE(tilings.empty());
    for (const opencl::GemmTiling& tiling : tilings) CHECK(tiling.tile.ends_with(", 64 bytes"));
  }
}

}  // namespace concord::test
