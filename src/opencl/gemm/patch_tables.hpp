// PatchTables: the patches of an image as two short tables, one for the taps of a kernel and one for its positions, so
// that a GEMM kernel finds an element by two reads and an addition. Used by tiled GEMM kernels.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "concord/opencl/gemm/problem.hpp"

namespace concord::opencl {

/// An entry (x, y): with tap t and position p the element lies at t.x + p.x if p.y has every bit of t.y. Otherwise the
/// element is outside the image or between two pixels, and 0.
using PatchEntry = std::array<std::int32_t, 2>;

struct PatchTables {
  std::vector<PatchEntry> taps;    // by the whole index along k, or along n when b.along_k
  std::vector<PatchEntry> places;  // of one block of the other index
  std::int64_t block = 1;          // that block's length
  std::int64_t plane = 0;          // elements from one block to the next
};

/// Whether tables support gemm.b: it has at most 31 kernel slices, rows and columns in total, and each table has at
/// most a million entries.
[[nodiscard]] bool has_patch_tables(const Gemm& gemm);
/// The tables of gemm.b, which must have them.
[[nodiscard]] PatchTables patch_tables(const Gemm& gemm);

}  // namespace concord::opencl
