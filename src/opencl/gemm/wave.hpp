// Matrix multiplications on the matrix cores of AMD and Intel (cl_kernels/gemm/wave.cl): a kernel with a tile of the
// caller's choice. Used by wave.cpp and by tests, which emulate the instructions.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "concord/opencl/driver/matrix_cores.hpp"
#include "concord/opencl/gemm/plan.hpp"

namespace concord::opencl {

/// A tile of a work-group and the part of it that a wave owns. tile.k counts 16-bit values; for fp32 it is half as
/// much.
struct WaveTile {
  GemmTile tile;
  std::int64_t wave_m, wave_n;
  [[nodiscard]] std::int64_t threads(WaveUnits units) const {
    return tile.m / wave_m * (tile.n / wave_n) * lanes_of(units);
  }
};
/// The tiles that a plan chooses among.
[[nodiscard]] std::span<const WaveTile> wave_tiles(WaveUnits units);

struct WaveKernel {
  WaveUnits units;
  WaveTile tile;
  bool is_emulated = false;  // in plain OpenCL C, for tests
};
/// The matrix cores must support gemm.precision; plan.tile is ignored.
[[nodiscard]] std::unique_ptr<Kernel> prepare_wave_kernel(Context& context, const Gemm& gemm, const WaveKernel& wave,
                                                          const GemmPlan& plan, std::string_view label);

}  // namespace concord::opencl
