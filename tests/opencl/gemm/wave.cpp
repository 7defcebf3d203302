// Products on the matrix cores of AMD and Intel, with the units' instructions emulated as their documents describe
// them.
#include "concord/opencl/gemm/wave.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "concord/opencl/conv/conv.hpp"
#include "concord/opencl/device.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/gemm/matrix_check.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"

namespace concord::test {
namespace {

using opencl::dense_gemm;
using opencl::Gemm;
using opencl::WaveKernel;
using opencl::WaveUnits;

/// The units on a tile with two waves or four, so that few numbers are emulated.
WaveKernel small_kernel(WaveUnits units) {
  const bool is_dpas = units == WaveUnits::dpas_8 || units == WaveUnits::dpas_16;
  return {units, {{32, 32, is_dpas ? 16 : 32, 1, 0, 1, 1}, is_dpas ? 16 : 32, 16}, true};
}

constexpr std::array kUnits{WaveUnits::mfma, WaveUnits::wmma, WaveUnits::wmma_12, WaveUnits::dpas_8,
                            WaveUnits::dpas_16};

Gemm in_batches(Gemm gemm, std::int64_t batch) {
  gemm.batch = batch;
  gemm.a.batch = gemm.m * gemm.k;
  gemm.b.batch = gemm.k * gemm.n;
  gemm.c.batch = gemm.m * gemm.n;
  gemm.largest *= batch;
  return gemm;
}

/// relu(x + bias of the row)
Gemm with_epilogue(Gemm gemm) {
  gemm.epilogue.text =
      "#define EPILOGUE_PARAMETERS , __global const float *bias, ulong bias_offset\n"
      "#define EPILOGUE(value, z, m, n_outer, n_inner) fmax((value) + bias[bias_offset + (m)] - 1.0f, 0.0f)\n";
  gemm.epilogue.arguments = {opencl::input(2)};
  return gemm;
}

/// What the kernel makes of an output full of a mark; each operand has room for the largest.
std::vector<float> result_of(const DevicePtr& device, const Gemm& gemm, const Kernel& kernel) {
  std::vector<BufferPtr> buffers;
  for (const std::int64_t factor : {5, 11, 3}) {
    const std::vector<float> values = opencl::whole_numbers(gemm.largest, factor);
    buffers.push_back(device->allocate(values.size() * sizeof(float)));
    device->write(*buffers.back(), 0, std::as_bytes(std::span(values)));
  }
  std::vector<float> result(static_cast<std::size_t>(gemm.largest), -1000);
  const BufferPtr output = device->allocate(result.size() * sizeof(float));
  device->write(*output, 0, std::as_bytes(std::span(result)));
  const BufferPtr workspace = device->allocate(std::max<std::size_t>(kernel.workspace(), 4));
  const std::array<Operand, 3> inputs{{{buffers[0].get(), 0}, {buffers[1].get(), 0}, {buffers[2].get(), 0}}};
  const Operand to{output.get(), 0};
  kernel.bind(inputs, {&to, 1}, {workspace.get(), 0})->enqueue();
  device->read(*output, 0, std::as_writable_bytes(std::span(result)));
  return result;
}

/// Against the plain kernel, whatever is not written included.
void check_product(const DevicePtr& device, const Gemm& gemm, WaveUnits units, std::int64_t parts = 1) {
  opencl::Context& context = context_of(device);
  const opencl::GemmImplementation* const plain = opencl::find_gemm_implementation("reference");
  const std::vector<float> expected = result_of(device, gemm, *plain->prepare(context, gemm, "test"));
  const WaveKernel small = small_kernel(units);
  const auto kernel =
      prepare_wave_kernel(context, gemm, small, cut_plan(gemm, small.tile.tile, 0, parts).value(), "test");
  INFO(name_of(units) << " in " << name_of(gemm.precision) << ": " << gemm.m << " x " << gemm.n << " x " << gemm.k
                      << ", " << parts << " parts, on " << device->info().id);
  CHECK(result_of(device, gemm, *kernel) == expected);
}

}  // namespace

TEST_CASE("matrix cores of every kind multiply as their documents say", "[opencl][gemm][wave]") {
  for (const DevicePtr& device : opencl_devices_with_groups_of(128)) {
    for (const WaveUnits units : kUnits) {
      for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
        if (!multiply_in(units, precision)) continue;
        Gemm gemm = dense_gemm(37, 45, 70, true, false);
        gemm.precision = precision;
        check_product(device, gemm, units);
      }
    }
  }
}

TEST_CASE("products on matrix cores take operands of every form", "[opencl][gemm][wave]") {
  Gemm shared = in_batches(dense_gemm(33, 40, 64, false, false), 3);
  shared.b.batch = 0;
  Gemm blocked = dense_gemm(36, 20, 48, true, true);  // k in blocks of 16, as the images of a convolution
  blocked.a.block = 16;
  blocked.a.row = 16;
  blocked.a.outer = 36 * 16;
  for (const DevicePtr& device : opencl_devices_with_groups_of(128)) {
    for (Gemm gemm : {dense_gemm(64, 32, 96, false, true), dense_gemm(40, 33, 60, true, true),
                      dense_gemm(33, 31, 31, true, true), with_epilogue(shared), blocked}) {
      gemm.precision = Precision::fp16;
      check_product(device, gemm, WaveUnits::mfma);
    }
    check_product(device, dense_gemm(40, 33, 60, true, true), WaveUnits::mfma);
  }
}

TEST_CASE("products on matrix cores cut k", "[opencl][gemm][wave]") {
  for (const DevicePtr& device : opencl_devices_with_groups_of(128)) {
    Gemm gemm = with_epilogue(in_batches(dense_gemm(35, 34, 150, true, false), 2));
    gemm.precision = Precision::bf16;
    check_product(device, gemm, WaveUnits::wmma, 3);
    check_product(device, gemm, WaveUnits::dpas_8, 3);
  }
}

TEST_CASE("products on matrix cores serve the passes of a convolution", "[opencl][gemm][wave]") {
  const ops::ConvSizes s = ops::conv_sizes({2, 12, 7, 6}, {20, 12, 3, 3},
                                           {.stride = {1, 2, 1}, .padding = {0, 1, 1}, .padding_after = {0, 1, 1}});
  const ops::ConvSizes one = ops::conv_sizes({2, 12, 4, 4}, {20, 12, 1, 1}, {});  // whose places go in fours
  for (const DevicePtr& device : opencl_devices_with_groups_of(128)) {
    for (Gemm gemm : {opencl::conv_forward_gemm(s), opencl::conv_backward_data_gemm(s),
                      opencl::conv_backward_weights_gemm(s), opencl::conv_backward_weights_gemm(one)}) {
      gemm.precision = Precision::fp16;
      check_product(device, gemm, WaveUnits::wmma_12);
    }
  }
}

TEST_CASE("emulated matrix cores pass the check that real ones have to pass", "[.][slow][opencl][wave]") {
  for (const DevicePtr& device : opencl_devices_with_groups_of(128)) {
    CHECK(opencl::multiplies_right(context_of(device), "emulated units", Precision::fp16,
                                   [](opencl::Context& context, const Gemm& gemm, std::size_t) {
                                     return prepare_wave_kernel(context, gemm, small_kernel(WaveUnits::mfma),
                                                                opencl::whole_plan(gemm, 0), "check");
                                   }));
  }
}

TEST_CASE("matrix cores whose instructions a driver does not know are not used", "[opencl][gemm][wave]") {
  for (const DevicePtr& device : opencl_devices_with_groups_of(128)) {
    if (context_of(device).wave_units() != WaveUnits::none) continue;  // it may well know them
    CHECK_FALSE(opencl::multiplies_right(
        context_of(device), "MFMA", Precision::fp16, [](opencl::Context& context, const Gemm& gemm, std::size_t) {
          const WaveKernel real{WaveUnits::mfma, opencl::wave_tiles(WaveUnits::mfma).back()};
          return prepare_wave_kernel(context, gemm, real, opencl::whole_plan(gemm, 0), "check");
        }));
  }
}

TEST_CASE("devices tell which matrix cores they have", "[opencl][wave]") {
  const auto amd = [](std::string_view name) { return opencl::amd_wave_units("Advanced Micro Devices, Inc.", name); };
  CHECK(amd("gfx908:sramecc+:xnack-") == WaveUnits::mfma_first);
  CHECK(amd("gfx90a:sramecc+:xnack-") == WaveUnits::mfma);
  CHECK(amd("gfx942") == WaveUnits::mfma);
  CHECK(amd("gfx1100") == WaveUnits::wmma);
  CHECK(amd("gfx1151") == WaveUnits::wmma);
  CHECK(amd("gfx1201") == WaveUnits::wmma_12);
  for (const char* none : {"gfx906", "gfx90c", "gfx1030", "gfx11", "gfx1300", "", "AMD Radeon RX 7900 XTX"}) {
    CHECK(amd(none) == WaveUnits::none);
  }
  CHECK(opencl::amd_wave_units("Mesa", "gfx1100") == WaveUnits::none);
  const std::string both = "cl_khr_fp16 cl_intel_required_subgroup_size cl_intel_subgroup_matrix_multiply_accumulate";
  const std::array<std::size_t, 3> alchemist{8, 16, 32};
  const std::array<std::size_t, 2> battlemage{16, 32};
  CHECK(opencl::intel_wave_units(both, alchemist) == WaveUnits::dpas_8);
  CHECK(opencl::intel_wave_units(both, battlemage) == WaveUnits::dpas_16);
  CHECK(opencl::intel_wave_units(both, {}) == WaveUnits::none);
  CHECK(opencl::intel_wave_units("cl_intel_required_subgroup_size", alchemist) == WaveUnits::none);
  CHECK(opencl::intel_wave_units(both + "_other", alchemist) == WaveUnits::none);
}

TEST_CASE("the tiles of matrix cores are what their kernel can work on", "[opencl][wave]") {
  for (const WaveUnits units : kUnits) {
    const bool is_dpas = units == WaveUnits::dpas_8 || units == WaveUnits::dpas_16;
    for (const opencl::WaveTile& one : opencl::wave_tiles(units)) {
      INFO(name_of(units) << " " << one.tile.name());
      const std::int64_t threads = one.threads(units);
      CHECK(threads <= 256);
      CHECK(2 * (one.tile.m + one.tile.n) * one.tile.k * 2 <= 32768);  // so that two groups share 64 KiB
      for (const std::int64_t lines : {one.tile.m, one.tile.n}) {
        CHECK(threads % lines == 0);
        const bool has_single = multiply_in(units, Precision::fp32);
        for (const std::int64_t depth : {one.tile.k, has_single ? one.tile.k / 2 : one.tile.k}) {
          CHECK(threads % (depth / 4) == 0);
          CHECK(lines * depth % (4 * threads) == 0);
        }
      }
      CHECK(one.wave_m % (is_dpas ? 8 : 16) == 0);
      CHECK(one.wave_n % (is_dpas ? opencl::lanes_of(units) : 16) == 0);
    }
  }
}

// For scripts/amd-compile: PoCL cannot build these programs, and nothing runs them.
TEST_CASE("the programs of matrix cores are asked for", "[.][wave_programs]") {
  const ops::ConvSizes conv = ops::conv_sizes({4, 64, 14, 14}, {64, 64, 3, 3}, {.padding = {0, 1, 1}});
  const std::vector<Gemm> passes{opencl::conv_forward_gemm(conv), opencl::conv_backward_data_gemm(conv),
                                 opencl::conv_backward_weights_gemm(conv)};
  for (const DevicePtr& device : opencl_devices()) {
    const auto ask = [&](Gemm gemm, WaveUnits units, Precision precision, const opencl::WaveTile& tile) {
      gemm.precision = precision;
      static_cast<void>(prepare_wave_kernel(context_of(device), gemm, {units, tile}, {0, 1, gemm.k, 0}, "compiled"));
    };
    for (const WaveUnits units : kUnits) {
      for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
        if (!multiply_in(units, precision)) continue;
        for (const opencl::WaveTile& tile : opencl::wave_tiles(units)) {
          ask(with_epilogue(dense_gemm(512, 512, 512, true, false)), units, precision, tile);
        }
        if (precision != Precision::fp16) continue;
        for (const Gemm& pass : passes) ask(pass, units, precision, opencl::wave_tiles(units).front());
      }
    }
  }
}

}  // namespace concord::test
