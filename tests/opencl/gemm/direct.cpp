// Small products whose factors go from memory to registers.
#include <cmath>
#include <utility>

#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/tuning/table.hpp"
#include "concord/opencl/gemm/tuning/trial.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"

namespace concord::test {
namespace {

using opencl::Gemm;

const opencl::GemmImplementation& direct() { return *opencl::find_gemm_implementation("direct"); }

/// Two products whose sizes are whole fours but no whole tiles.
Gemm two_products(bool a_along_k, bool b_along_k, std::int64_t k) {
  constexpr std::int64_t kRows = 68, kColumns = 44;
  Gemm gemm = opencl::dense_gemm(kRows, kColumns, k, a_along_k, b_along_k);
  gemm.batch = 2;
  gemm.a.batch = kRows * k;
  gemm.b.batch = k * kColumns;
  gemm.c.batch = kRows * kColumns;
  return gemm;
}

}  // namespace

TEST_CASE("small products from memory to registers: every tile and form of the factors", "[opencl][gemm]") {
  for (const DevicePtr& device : opencl_devices()) {
    opencl::Context& context = context_of(device);
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
      for (const auto& [a_along_k, b_along_k] : {std::pair{true, true}, {true, false}, {false, true}, {false, false}}) {
        for (const std::int64_t k : {20, 1100}) {
          Gemm gemm = two_products(a_along_k, b_along_k, k);
          gemm.precision = precision;
          if (!opencl::gemm_refusal(direct(), context, gemm).empty()) continue;
          opencl::ProductTrial trial(*device, context, gemm);
          for (const opencl::GemmTiling& tiling : direct().tilings(context, gemm)) {
            CAPTURE(device->info().name, name_of(precision), a_along_k, b_along_k, k, tiling.tile);
            for (const std::int64_t parts : {1, 3}) {
              const std::unique_ptr<Kernel> kernel =
                  direct().prepare_tiling(context, trial.gemm(), {tiling.tile, parts}, "product");
              if (kernel != nullptr) CHECK(trial.run(*kernel, INFINITY).fault.empty());
            }
          }
        }
      }
    }
  }
}

TEST_CASE("products of many tiles do not go from memory to registers", "[opencl][gemm]") {
  for (const DevicePtr& device : opencl_devices()) {
    const opencl::Context& context = context_of(device);
    CHECK(std::isfinite(direct().seconds(context, opencl::dense_gemm(32, 16, 784))));
    CHECK(std::isinf(direct().seconds(context, opencl::dense_gemm(8192, 8192, 4096))));
  }
}

}  // namespace concord::test
