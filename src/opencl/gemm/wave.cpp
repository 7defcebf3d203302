// Matrix multiplications on the matrix cores of AMD and Intel by waves: the tiles, and the definitions and arguments of
// the kernel.
#include "concord/opencl/gemm/wave.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "concord/opencl/gemm/arguments.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/gemm/matrix_check.hpp"
#include "concord/opencl/gemm/matrix_kernel.hpp"
#include "concord/opencl/gemm/operands.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

// None of these rates was measured. Rates are fractions of the peak rate of the matrix cores (gpu_model.hpp): a quarter
// in 16 bits, half of that for the smaller tiles, which read each operand twice as often. The fraction for fp32, which
// needs fewer reads per multiplication, is twice as high.
constexpr std::array<WaveTile, 3> kMfma{{{{128, 128, 32, 2, 64, 0.25, 0.6}, 64, 64},
                                         {{128, 64, 32, 3, 64, 0.19, 0.45}, 64, 32},
                                         {{64, 64, 32, 4, 64, 0.125, 0.35}, 32, 32}}};
constexpr std::array<WaveTile, 3> kWmma{{{{128, 128, 32, 2, 64, 0.25, 0.6}, 64, 32},
                                         {{128, 64, 32, 3, 64, 0.19, 0.45}, 32, 32},
                                         {{64, 64, 32, 4, 64, 0.125, 0.35}, 32, 16}}};
// A larger part of a tile would leave too few of Intel's 128 registers for other values.
constexpr std::array<WaveTile, 3> kDpas8{{{{128, 64, 16, 2, 64, 0.25, 0.6}, 16, 16},
                                          {{64, 64, 16, 3, 64, 0.19, 0.45}, 16, 16},
                                          {{64, 32, 16, 4, 64, 0.125, 0.35}, 16, 16}}};
constexpr std::array<WaveTile, 3> kDpas16{{{{128, 64, 16, 2, 64, 0.25, 0.6}, 32, 16},
                                           {{64, 64, 16, 3, 64, 0.19, 0.45}, 32, 16},
                                           {{64, 32, 16, 4, 64, 0.125, 0.35}, 16, 16}}};
constexpr double kSinglePrecision = 2;  // of the share in 16 bits
constexpr std::int64_t kWaveBand = 16;

bool is_single(Precision precision) { return precision == Precision::fp32 || precision == Precision::tf32; }

std::string_view wave_precision(Precision precision) {
  if (is_single(precision)) return "PRECISION=FP32";
  return precision == Precision::bf16 ? "PRECISION=BF16" : "PRECISION=FP16";
}

/// The tile with its depth in the problem's precision.
GemmTile tile_in(const WaveTile& wave, Precision precision) {
  GemmTile tile = wave.tile;
  if (is_single(precision)) tile.k /= 2;
  return tile;
}

std::vector<GemmTile> tiles_for(const Context& context, const Gemm& gemm) {
  const GpuModel& gpu = context.gpu();
  const double most = is_single(gemm.precision) ? gpu.matrix_fp32_a_second * kSinglePrecision : gpu.matrix_a_second;
  std::vector<GemmTile> tiles;
  for (const WaveTile& one : wave_tiles(context.wave_units())) {
    tiles.push_back(tile_in(one, gemm.precision));
    tiles.back().products_a_second *= most;
  }
  return tiles;
}

GemmPlan wave_plan(const Context& context, const Gemm& gemm) {
  return gemm_plan(context.gpu(), gemm, tiles_for(context, gemm));
}

std::unique_ptr<Kernel> prepare_wave_tile(Context& context, const Gemm& gemm, const GemmPlan& plan,
                                          std::string_view label) {
  const WaveUnits units = context.wave_units();
  return prepare_wave_kernel(context, gemm, {units, wave_tiles(units)[plan.tile]}, plan, label);
}

}  // namespace

std::span<const WaveTile> wave_tiles(WaveUnits units) {
  switch (units) {
    case WaveUnits::mfma_first:
    case WaveUnits::mfma: return kMfma;
    case WaveUnits::wmma:
    case WaveUnits::wmma_12: return kWmma;
    case WaveUnits::dpas_8: return kDpas8;
    case WaveUnits::dpas_16: return kDpas16;
    case WaveUnits::none: break;
  }
  return {};
}

std::unique_ptr<Kernel> prepare_wave_kernel(Context& context, const Gemm& gemm, const WaveKernel& wave,
                                            const GemmPlan& plan, std::string_view label) {
  const GemmTile tile = tile_in(wave.tile, gemm.precision);
  const std::int64_t threads = wave.tile.threads(wave.units);
  const RightOperand right = right_operand(context, gemm);
  std::vector<std::string> definitions{fmt::format("UNITS={}", name_of(wave.units)),
                                       fmt::format("TILE_M={}", tile.m),
                                       fmt::format("TILE_N={}", tile.n),
                                       fmt::format("TILE_K={}", tile.k),
                                       fmt::format("WAVE_M={}", wave.tile.wave_m),
                                       fmt::format("WAVE_N={}", wave.tile.wave_n),
                                       fmt::format("THREADS={}", threads),
                                       fmt::format("BAND={}", kWaveBand),
                                       gemm.a.k == 1 && left_in_fours(gemm) ? "A_VECTOR=4" : "A_VECTOR=1",
                                       gemm.b.along_k && right.fours ? "B_VECTOR=4" : "B_VECTOR=1",
                                       std::string(wave_precision(gemm.precision))};
  if (gemm.precision == Precision::fp16) definitions.emplace_back("NUMBERS_F16");
  if (wave.is_emulated) definitions.emplace_back("EMULATED");
  const std::int64_t tiles = divide_up(gemm.m, tile.m) * divide_up(gemm.n, tile.n);
  Stage multiply{gemm_program(context, gemm, "gemm/wave.cl", plan.parts == 1, std::move(definitions)),
                 "gemm_wave_multiply",
                 gemm_arguments(gemm, plan.parts, plan.part, right.arguments),
                 {size(tiles * threads), 1, size(gemm.batch * plan.parts)},
                 {size(threads), 1, 1}};
  return gemm_staged(context, gemm, fmt::format("{} wave {}", label, tile.name()), std::move(multiply), plan.parts);
}

namespace {

std::string_view wave_device_refusal(Context& context, Precision precision) {
  const WaveUnits units = context.wave_units();
  if (!multiply_in(units, precision)) return "the device has no matrix cores for this precision";
  const bool is_right = context.remembered(fmt::format("wave {}", name_of(precision)), [&] {
    return multiplies_right(
        context, name_of(units), precision, [&](Context& device, const Gemm& gemm, std::size_t tile_number) {
          return prepare_wave_tile(device, gemm, whole_plan(gemm, tile_number % wave_tiles(units).size()), "check");
        });
  });
  return is_right ? kNoRefusal : kWrongProducts;
}

double wave_seconds(const Context& context, const Gemm& gemm) {
  if (!is_for_matrix_cores(gemm) || !multiply_in(context.wave_units(), gemm.precision)) return INFINITY;
  return product_seconds_with_epilogue(context.gpu(), gemm, wave_plan(context, gemm).seconds, 1);
}

std::unique_ptr<Kernel> prepare_wave(Context& context, const Gemm& gemm, std::string_view label) {
  return prepare_wave_tile(context, gemm, wave_plan(context, gemm), label);
}

std::vector<GemmTiling> wave_tilings(const Context& context, const Gemm& gemm) {
  return tilings_to_try(context.gpu(), gemm, tiles_for(context, gemm));
}

std::unique_ptr<Kernel> prepare_wave_tiling(Context& context, const Gemm& gemm, const GemmTiling& tiling,
                                            std::string_view label) {
  const std::optional<GemmPlan> plan = plan_of_tiling(gemm, tiles_for(context, gemm), tiling);
  return plan ? prepare_wave_tile(context, gemm, *plan, label) : nullptr;
}

}  // namespace

extern const GemmImplementation kWaveGemm{
    .name = "wave",
    .is_alternative_of = [](const Context& context) { return context.wave_units() != WaveUnits::none; },
    .refusal = [](const Context&, const Gemm& gemm) { return matrix_cores_refusal(gemm); },
    .device_refusal = wave_device_refusal,
    .seconds = wave_seconds,
    .prepare = prepare_wave,
    .files = {"gemm/wave.cl"},
    .tilings = wave_tilings,
    .prepare_tiling = prepare_wave_tiling};

}  // namespace concord::opencl
