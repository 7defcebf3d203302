// The sizes that matrix units are for.
#include "concord/opencl/matrix_units.hpp"

#include <array>
#include <limits>

#include "concord/opencl/patch_tables.hpp"

namespace concord::opencl {

bool is_for_matrix_units(const Gemm& gemm) {
  constexpr std::int64_t kLeastProducts = 120'000'000;  // below, packing and cutting cost more than they gain
  return gemm.m * gemm.n * gemm.k * gemm.batch >= kLeastProducts;
}

bool matrix_units_accept(const Gemm& gemm) {
  constexpr std::int64_t kLeast = 8;
  if (gemm.a.is_patch || gemm.largest > std::numeric_limits<std::int32_t>::max()) return false;
  if (gemm.m < kLeast || gemm.n < kLeast || gemm.k < kLeast) return false;
  return !gemm.b.is_patch || has_patch_tables(gemm);
}

std::string_view matrix_precision(Precision precision) {
  constexpr std::array<std::string_view, 4> kDefinitions{"PRECISION=SPLIT", "PRECISION=TF32", "PRECISION=BF16",
                                                         "PRECISION=FP16"};
  return kDefinitions.at(static_cast<std::size_t>(precision));
}

}  // namespace concord::opencl
