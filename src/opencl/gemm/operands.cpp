// Which operands are adjacent, aligned and in range by fours; the tables of patches on the device.
#include "concord/opencl/gemm/operands.hpp"

#include <algorithm>

#include "concord/opencl/gemm/patch_tables.hpp"
#include "concord/opencl/launch/constant_table.hpp"
#include "concord/opencl/launch/strides.hpp"

namespace concord::opencl {
namespace {

bool patches_in_fours(const Gemm& gemm, const PatchTables& tables) {
  if (!in_fours({gemm.b.along_k ? gemm.k : gemm.n, gemm.b.batch, tables.block, tables.plane})) return false;
  const std::int32_t all = tables.taps.front()[1];
  for (std::size_t i = 0; i < tables.places.size(); ++i) {
    const PatchEntry& place = tables.places[i];
    const bool follows = i % 4 == 0 ? place[0] % 4 == 0 : place[0] == tables.places[i - 1][0] + 1;
    if (!follows || (place[1] & all) != all) return false;
  }
  return std::ranges::all_of(tables.taps, [&](const PatchEntry& tap) { return tap[0] % 4 == 0 && tap[1] == all; });
}

/// Operands begin at multiples of 16 bytes; parts of operands may begin anywhere.
bool begins_in_fours(const BufferArgument& argument) { return argument.extra_bytes % (4 * sizeof(float)) == 0; }

}  // namespace

bool in_fours(std::initializer_list<std::int64_t> values) {
  return std::ranges::all_of(values, [](std::int64_t value) { return value % 4 == 0; });
}

bool left_in_fours(const Gemm& gemm) {
  const GemmLeft& a = gemm.a;
  if (!begins_in_fours(a.buffer)) return false;
  if (a.k == 1) return in_fours({a.row, gemm.k, a.block, a.outer, a.batch});
  return in_fours({a.k, gemm.m, a.batch});
}

bool right_in_fours(const Gemm& gemm) {
  const GemmRight& b = gemm.b;
  if (!begins_in_fours(b.buffer)) return false;
  if (b.along_k) return in_fours({b.n, gemm.k, b.block, b.block != 0 ? b.k : 0, b.batch});
  return b.n == 1 && in_fours({b.k, gemm.n, b.batch});
}

RightOperand right_operand(Context& context, const Gemm& gemm) {
  RightOperand right;
  if (!gemm.b.is_patch) {
    right.fours = right_in_fours(gemm);
    return right;
  }
  const PatchTables tables = patch_tables(gemm);
  right.fours = begins_in_fours(gemm.b.buffer) && patches_in_fours(gemm, tables);
  right.arguments = {constant_table<PatchEntry>(context, tables.taps),
                     constant_table<PatchEntry>(context, tables.places)};
  add_divisor(right.arguments, tables.block);
  right.arguments.emplace_back(static_cast<std::int32_t>(tables.plane));
  return right;
}

}  // namespace concord::opencl
