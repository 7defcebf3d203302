// Attention and its gradients on the matrix cores of NVIDIA GPUs (cl_kernels/ops/attention_mma*.cl): the supported
// problems, and the tiles.
#include <fmt/format.h>

#include <array>
#include <memory>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/ops/attention.hpp"

namespace concord::opencl {
namespace {

/// Rows that a work-group owns, 16·m_tiles of them a warp's, and rows of a tile of the other side
/// (cl_kernels/ops/attention_mma.h).
struct MmaTiles {
  std::int64_t own, other, m_tiles;
  [[nodiscard]] std::int64_t threads() const { return own / (16 * m_tiles) * 32; }
};

/// Rows lie in local memory as multiples of 32 values.
std::int64_t padded(std::int64_t width) { return (width + 31) / 32 * 32; }

/// As many warps as copy whole blocks of eight rows at once. With 16 rows a warp's sums, scores and split factors fit
/// into registers; only the gradient of keys and values spills a few from 96 values on.
MmaTiles tiles_of(const AttentionProblem& problem) {
  constexpr std::array<MmaTiles, 4> kTiles{{{64, 32, 1}, {64, 32, 1}, {96, 32, 1}, {128, 32, 1}}};
  // With vectors in 16 bits factors need no registers of their own.
  // Measured on an H200 for heads of 64 values; random numbers need registers.
  constexpr std::array<MmaTiles, 4> kForward{{{64, 64, 1}, {64, 64, 1}, {96, 32, 2}, {128, 32, 2}}};
  constexpr std::array<MmaTiles, 4> kBackward{{{128, 32, 2}, {128, 32, 2}, {96, 32, 1}, {128, 32, 1}}};
  constexpr std::array<MmaTiles, 4> kBackwardDrawing{{{64, 64, 1}, {64, 64, 1}, {96, 32, 1}, {128, 32, 1}}};
  const auto i = static_cast<std::size_t>(padded(problem.sizes.width) / 32 - 1);
  if (!problem.tokens) return kTiles[i];
  if (problem.pass == AttentionPass::forward) return kForward[i];
  return problem.form.dropout > 0 ? kBackwardDrawing[i] : kBackward[i];
}

std::int64_t blocks_of(const AttentionProblem& problem) {
  const std::int64_t own = tiles_of(problem).own;
  return (problem.rows() + own - 1) / own;
}

std::int64_t local_bytes(const AttentionProblem& problem) {
  const MmaTiles tiles = tiles_of(problem);
  const std::int64_t owned = problem.pass == AttentionPass::forward ? 1 : 2;
  const std::int64_t of_rows = problem.pass == AttentionPass::backward_key_value ? 6 * tiles.other : 0;
  const std::int64_t of_marks = tiles.other + 1;
  const std::int64_t value = problem.tokens ? 2 : 4;
  return value * (owned * tiles.own + 4 * tiles.other) * padded(problem.sizes.width) + 4 * (of_rows + of_marks);
}

}  // namespace

// Narrower heads are mostly padding; a launch has at most 65535 groups in the dimensions of batch and blocks.
bool attention_mma_supports(Context& context, const AttentionProblem& problem) {
  constexpr std::int64_t kNarrowest = 16, kWidest = 128;
  const std::int64_t width = problem.sizes.width;
  return width >= kNarrowest && width <= kWidest && problem.sizes.batch <= kMostGroups &&
         blocks_of(problem) <= kMostGroups &&
         static_cast<std::size_t>(local_bytes(problem)) <=
             declarable_local_memory(context.capability(), context.limits().local_memory) &&
         find_gemm_implementation("mma")->device_refusal(context, problem.precision).empty();
}

std::unique_ptr<Kernel> prepare_attention_mma(Context& context, const AttentionProblem& problem) {
  const MmaTiles tiles = tiles_of(problem);
  const bool is_forward = problem.pass == AttentionPass::forward;
  std::vector<std::string> definitions = attention_definitions(problem);
  definitions.push_back(fmt::format("OWN={}", tiles.own));
  definitions.push_back(fmt::format("OTHER={}", tiles.other));
  definitions.push_back(fmt::format("M_TILES={}", tiles.m_tiles));
  // Gradients can exceed the range of fp16: tf32 has as many significant bits and a larger range.
  if (problem.tokens) {
    definitions.emplace_back("TOKENS");
    for (std::string& definition : number_definitions(context, storage_number(problem.precision))) {
      definitions.push_back(std::move(definition));
    }
  } else if (problem.precision == Precision::bf16) {
    definitions.emplace_back("BF16_PRODUCT");
  } else if (problem.precision != Precision::fp32) {
    definitions.emplace_back("ONE_PRODUCT");
  }
  constexpr std::array<std::string_view, 3> kFunctions{"attention_mma_forward", "attention_mma_backward_query",
                                                       "attention_mma_backward_key_value"};
  Stage stage{context.program(is_forward ? "ops/attention_mma.cl" : "ops/attention_mma_backward.cl", definitions),
              std::string(kFunctions[static_cast<std::size_t>(problem.pass)]), attention_arguments(problem)};
  stage.local = {static_cast<std::size_t>(tiles.threads()), 1, 1};
  stage.global = {static_cast<std::size_t>(problem.row_heads()) * stage.local[0],
                  static_cast<std::size_t>(problem.sizes.batch), static_cast<std::size_t>(blocks_of(problem))};
  return std::make_unique<StagedKernel>(
      context, fmt::format("{} mma {}x{}{}", problem.name, tiles.own, tiles.other, problem.tokens ? " tokens" : ""),
      std::vector<StagedKernel::AnyStage>{std::move(stage)});
}

}  // namespace concord::opencl
