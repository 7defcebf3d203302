// The sizes that matrix cores are for.
#include "concord/opencl/gemm/matrix_kernel.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "concord/opencl/gemm/patch_tables.hpp"

namespace concord::opencl {

bool is_for_matrix_cores(const Gemm& gemm) {
  // Below, packing and cutting cost more than they gain. Images that lie channels-last are not packed.
  const std::int64_t least = gemm.b.is_channels_last ? 20'000'000 : 120'000'000;
  return gemm.m * gemm.n * gemm.k * gemm.batch >= least;
}

std::string_view matrix_cores_refusal(const Gemm& gemm) {
  const std::int64_t least = gemm.has_channels_last() ? 1 : 8;  // another kernel would need another layout
  if (gemm.a.is_patch) return "the left operand is patches of an image";
  if (gemm.largest > std::numeric_limits<std::int32_t>::max()) return "an operand has 2^31 elements or more";
  if (std::min({gemm.m, gemm.n, gemm.k}) < least) return "a size is too small";
  if (gemm.b.is_patch && !has_patch_tables(gemm)) return "the patches are too many for tables";
  return {};
}

std::string_view matrix_precision(Precision precision) {
  constexpr std::array<std::string_view, 4> kDefinitions{"PRECISION=SPLIT", "PRECISION=TF32", "PRECISION=BF16",
                                                         "PRECISION=FP16"};
  return kDefinitions.at(static_cast<std::size_t>(precision));
}

}  // namespace concord::opencl
