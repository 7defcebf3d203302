// Products of matrices of 16-bit numbers on NVIDIA's Hopper GPUs, which the copy engine reads where they lie
// (cl_kernels/gemm/hopper/tokens.cl). Used by matmul of tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/launch/stage.hpp"

namespace concord::opencl {

/// A factor in 16-bit numbers: lines of k, or, turned, lines of rows (of the right factor: of columns), `pitch` numbers
/// apart.
struct TokensFactor {
  BufferArgument buffer = {};
  bool is_turned = false;
  std::int64_t pitch = 0;
};

/// C(r, q) = Σ_k A(r, k)·B(q, k). The result lies in rows, in 16-bit numbers or fp32, `pitch` of them apart. The
/// epilogue of a result in 16 bits is a block_epilogue for the layout of tokens, of fp32 a gemm_epilogue with r as m
/// and q as n; it is empty for none. `appended` (block_appended) gives a second result that lies as the first, which is
/// in 16-bit numbers; it is empty for none.
struct TokensProduct {
  std::int64_t rows = 0, columns = 0, k = 0;
  TokensFactor left = {}, right = {};
  BufferArgument result = {};
  std::int64_t pitch = 0;
  bool is_fp32 = false;
  Precision precision = Precision::bf16;
  EpilogueText epilogue = {};
  BufferArgument second_result = {};
  EpilogueText appended = {};
};

/// The tile of 64·blocks rows by `columns` columns, the number of work-groups, and how many tiles are cut along k.
struct TokensPlan {
  std::int64_t blocks, columns, groups, cut;
  double seconds;  // expected
};
/// The plan for so many products of these sizes together that has the least expected time on so many compute units.
[[nodiscard]] TokensPlan tokens_plan(const TokensProduct& product, std::int64_t units, std::int64_t members = 1);

/// The tiles of a product.
[[nodiscard]] std::int64_t tiles_of(const TokensProduct& product, const TokensPlan& plan);

/// Why the copy engine or the kernel does not take the product on this device; empty where they do. May run a check on
/// the device.
[[nodiscard]] std::string_view tokens_product_refusal(Context& context, const TokensProduct& product);
/// The kernel of products that differ in nothing but their memories, whose name begins with `label`. The epilogue of
/// the first is that of all.
[[nodiscard]] std::unique_ptr<Kernel> prepare_tokens_products(Context& context, std::span<const TokensProduct> members,
                                                              std::string_view label);

}  // namespace concord::opencl
