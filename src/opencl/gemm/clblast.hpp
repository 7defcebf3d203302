// Matrix multiplications by CLBlast as stages of a larger kernel. Used by im2col.
#pragma once

#include <cstddef>

#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/launch/stage.hpp"

namespace concord::opencl {

/// A row-major matrix multiplication C = op(A)·op(B) + beta·C through CLBlast. Offsets of operands are in elements.
struct ClblastProduct {
  bool transpose_a = false, transpose_b = false;
  std::size_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  float beta = 0;
  BufferArgument a, b, c;           // extra_bytes are honoured
  std::size_t workspace_begin = 0;  // where in the workspace CLBlast's temporary memory may lie
};
/// Bytes of workspace, from workspace_begin, that the matrix multiplication needs.
[[nodiscard]] std::size_t clblast_workspace(Context& context, const ClblastProduct& product);
[[nodiscard]] LibraryStage clblast_stage(Context& context, const ClblastProduct& product);

}  // namespace concord::opencl
