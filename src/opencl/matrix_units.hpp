// What products in tiles share: how operands may be copied, the tables of patches as arguments, the choice of a tile.
// Used by gemm_mma, gemm_wgmma, gemm_tma, gemm_wave and gemm_tiled, and for what a device has by attention_mma.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "concord/opencl/gemm.hpp"

namespace concord::opencl {

/// For choosing among plans, as seen on an H200: bytes that a kernel moves in a second where nothing else holds it up,
/// and the seconds that every further launch takes: to start, to wait for its first reads, to end.
inline constexpr double kBytesASecond = 4e12, kLaunchSeconds = 8e-6;

/// A cut of k and the time that the product should take with it.
struct MatrixPlan {
  std::size_t tile = 0;  // in the implementation's list
  std::int64_t parts = 1, part = 0;
  double seconds = 0;
};

/// One tile of an implementation's list: `resident` groups share a compute unit and do `products_a_second` together,
/// one alone `share` of that. Begin and end of a group take as long as `filling` more values of k.
struct MatrixTile {
  std::int64_t m, n, k, resident, filling;
  double products_a_second, share;
};
/// The tile and cut of k that should take least time: waves of groups times what a group does, and adding up the parts.
[[nodiscard]] MatrixPlan matrix_plan(const Context& context, const Gemm& gemm, const std::vector<MatrixTile>& tiles);
/// On so many units that take a group each, which the device may count otherwise.
[[nodiscard]] MatrixPlan matrix_plan(std::int64_t units, const Gemm& gemm, const std::vector<MatrixTile>& tiles);

/// What a product should take in so many launches that multiplies in that time: no less than its operands take to be
/// moved, and a launch each.
[[nodiscard]] double product_seconds(const Gemm& gemm, double multiplying, int launches);
/// The same where the epilogue's operands are read once the sums are there, with nothing else to do meanwhile.
[[nodiscard]] double product_seconds_with_epilogue(const Gemm& gemm, double multiplying, int launches);

/// Whether a product is so large that matrix units pay for being fed.
[[nodiscard]] bool is_for_matrix_units(const Gemm& gemm);

/// With the tile at `index`, k in so many parts or a few less; nothing where k is too short.
[[nodiscard]] std::optional<MatrixPlan> cut_plan(const Gemm& gemm, const MatrixTile& tile, std::size_t index,
                                                 std::int64_t parts);

/// By one tile of the list, k in one piece, or in two where it is long.
[[nodiscard]] MatrixPlan whole_plan(const Gemm& gemm, std::size_t tile);

/// Whether all are multiples of 4.
[[nodiscard]] bool in_fours(std::initializer_list<std::int64_t> values);

/// Whether four neighbours of the left operand are adjacent in memory, aligned, and in range together.
[[nodiscard]] bool left_in_fours(const Gemm& gemm);

/// The PRECISION of NVIDIA's kernel files: fp32 is split.
[[nodiscard]] std::string_view matrix_precision(Precision precision);

/// The right operand as the kernels with gemm_element.h take it.
struct RightOperand {
  std::vector<Argument> arguments;  // TABLE_PARAMETERS
  bool fours = false;               // four neighbours are adjacent in memory, aligned, and in range together
};
/// gemm.b must be no patch, or have tables (patch_tables).
[[nodiscard]] RightOperand right_operand(Context& context, const Gemm& gemm);

/// Whether gemm is within what the kernels can index and read.
[[nodiscard]] bool matrix_units_accept(const Gemm& gemm);

/// Bytes of local memory that a kernel may declare. The driver reports 48 KiB, but holds only arguments to it; the rest
/// goes by the compute capability (CUDA programming guide, table of technical specifications). What the device reports,
/// on others.
[[nodiscard]] std::size_t nvidia_local_memory(const Context& context);

}  // namespace concord::opencl
