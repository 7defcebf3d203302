// Attention and its gradients on the warpgroup instructions of NVIDIA's Hopper GPUs
// (cl_kernels/ops/attention_wgmma*.cl): the supported problems, the tiles, and the maps of the vectors for the copy
// engine.
#include <fmt/format.h>

#include <array>
#include <memory>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/hopper/tensor_map.hpp"
#include "concord/opencl/launch/constant_table.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/ops/attention.hpp"

namespace concord::opencl {
namespace {

constexpr std::int64_t kChunk = 64;  // values of a row of a box, and rows of a warpgroup

/// Warpgroups that multiply, rows of a tile of the other side, tiles of each kind that are loaded ahead, and registers
/// of a thread that multiplies and of one that copies (cl_kernels/ops/attention_wgmma.h).
struct WgmmaTiles {
  std::int64_t warpgroups, other, stages, multiplier_registers, copier_registers;
  [[nodiscard]] std::int64_t own() const { return kChunk * warpgroups; }
  [[nodiscard]] std::int64_t threads() const { return 128 * (warpgroups + 1); }
  [[nodiscard]] std::int64_t blocks(const AttentionProblem& problem) const { return divide_up(problem.rows(), own()); }
  [[nodiscard]] std::int64_t local_bytes(const AttentionProblem& problem) const {
    const std::int64_t row = 2 * round_up(problem.sizes.width, kChunk);
    const std::int64_t owned = problem.pass == AttentionPass::forward ? 1 : 2;
    const std::int64_t of_rows = problem.pass == AttentionPass::backward_key_value ? 12 : 0, marks = 4 * other;
    const std::int64_t barriers = 8 * (1 + 4 * stages);
    return owned * own() * row + stages * other * (2 * row + of_rows) + barriers + marks;
  }
};

/// Two warpgroups have 240 registers a thread, three have 160. Sums, scores and packed weights fit into them; measured
/// on an H200.
WgmmaTiles wgmma_tiles(const AttentionProblem& problem) {
  constexpr WgmmaTiles kTwo{2, 128, 2, 240, 24}, kTwoDeep{2, 128, 4, 240, 24}, kTwoNarrow{2, 64, 2, 240, 24};
  const std::int64_t width = problem.sizes.width;
  switch (problem.pass) {
    case AttentionPass::forward: return width <= 64 ? kTwoDeep : width <= 128 ? kTwo : kTwoNarrow;
    case AttentionPass::backward_query: return kTwo;
    case AttentionPass::backward_key_value: break;
  }
  return kTwoNarrow;
}

/// The map of vector operand `i` (batch, head, row, value), from which `rows` rows of 64 values are copied at once.
TensorMap map_of(const AttentionProblem& problem, std::size_t i, std::int64_t rows) {
  const ops::AttentionSizes& s = problem.sizes;
  const bool is_of_keys = i == 1 || i == 2;
  const std::int64_t heads = is_of_keys ? s.key_heads : s.heads, rows_of_head = is_of_keys ? s.keys : s.queries;
  const std::int64_t vector = 2 * s.width, row = 2 * problem.pitch(i);
  const std::int64_t head = s.by_tokens() ? vector : rows_of_head * vector;
  const std::array<std::int64_t, 4> sizes{s.width, rows_of_head, heads, s.batch}, box{kChunk, rows, 1, 1};
  const std::array<std::int64_t, 3> strides{row, head, s.by_tokens() ? rows_of_head * row : heads * head};
  const MapNumber number = storage_number(problem.precision) == DType::f16 ? MapNumber::f16 : MapNumber::bf16;
  return box_map({number, sizes, strides}, box);
}

/// Writes the maps of q, k, v and, for gradients, diff_dst.
Stage describe(Context& context, const AttentionProblem& problem, const KeptArgument& to) {
  const WgmmaTiles tiles = wgmma_tiles(problem);
  const bool owns_keys = problem.pass == AttentionPass::backward_key_value;
  const std::int64_t query_rows = owns_keys ? tiles.other : tiles.own();
  const std::int64_t key_rows = owns_keys ? tiles.own() : tiles.other;
  // Of the forward pass the last one is not read.
  const std::size_t last = problem.pass == AttentionPass::forward ? 2 : 3;
  const std::array<TensorMap, 4> maps{map_of(problem, 0, query_rows), map_of(problem, 1, key_rows),
                                      map_of(problem, 2, key_rows), map_of(problem, last, query_rows)};
  std::vector<Argument> arguments{constant_table<TensorMap>(context, maps),
                                  to,
                                  problem.vectors(0),
                                  problem.vectors(1),
                                  problem.vectors(2),
                                  problem.vectors(last)};
  return {.program = context.program("ops/attention_maps.cl", {}),
          .function = "attention_maps",
          .arguments = std::move(arguments),
          .global = {1, 1, 1},
          .local = {1, 1, 1},
          .once = true};
}

}  // namespace

// Heads of less than 40 values are mostly padding, and so are those of 136 to 192, which would be padded to 256. The
// gradients of keys and values of wider heads than 128 do not fit into registers. A launch has at most 65535 groups in
// the dimensions of batch and blocks.
bool attention_wgmma_supports(Context& context, const AttentionProblem& problem) {
  constexpr std::int64_t kNarrowest = 40, kWidest = 256, kWidestBackward = 128;
  const std::int64_t width = problem.sizes.width;
  const bool is_forward = problem.pass == AttentionPass::forward;
  const WgmmaTiles tiles = wgmma_tiles(problem);
  return is_hopper(context) && problem.form.scale > 0 && width >= kNarrowest &&
         width <= (is_forward ? kWidest : kWidestBackward) && (width <= 128 || width > 192) && width % 8 == 0 &&
         problem.sizes.batch <= kMostGroups && tiles.blocks(problem) <= kMostGroups &&
         static_cast<std::size_t>(tiles.local_bytes(problem)) <=
             declarable_local_memory(context.capability(), context.limits().local_memory) &&
         find_gemm_implementation("tma")->device_refusal(context, problem.precision).empty();
}

bool attention_wgmma_is_faster(const AttentionProblem& problem) {
  constexpr std::int64_t kFewKeys = 256;
  return problem.sizes.keys >= kFewKeys && problem.sizes.queries >= kFewKeys;
}

std::unique_ptr<Kernel> prepare_attention_wgmma(Context& context, const AttentionProblem& problem) {
  const WgmmaTiles tiles = wgmma_tiles(problem);
  std::vector<std::string> definitions = attention_definitions(problem);
  definitions.insert(definitions.end(), {"TOKENS", fmt::format("WARPGROUPS={}", tiles.warpgroups),
                                         fmt::format("OTHER={}", tiles.other), fmt::format("STAGES={}", tiles.stages),
                                         fmt::format("MULTIPLIER_REGISTERS={}", tiles.multiplier_registers),
                                         fmt::format("COPIER_REGISTERS={}", tiles.copier_registers)});
  for (std::string& definition : number_definitions(context, storage_number(problem.precision))) {
    definitions.push_back(std::move(definition));
  }
  struct Function {
    std::string_view name, file;
  };
  constexpr std::array<Function, 3> kFunctions{
      {{"attention_wgmma_forward", "ops/attention_wgmma.cl"},
       {"attention_wgmma_backward_query", "ops/attention_wgmma_backward_query.cl"},
       {"attention_wgmma_backward_key_value", "ops/attention_wgmma_backward_key_value.cl"}}};
  const Function& function = kFunctions[static_cast<std::size_t>(problem.pass)];
  const KeptArgument kept_maps = kept(4 * sizeof(TensorMap));
  const std::array<Argument, 1> maps{further(kept_maps, 0, 1)};
  Stage stage{context.program(function.file, definitions), std::string(function.name),
              attention_arguments(problem, maps)};
  stage.local = {static_cast<std::size_t>(tiles.threads()), 1, 1};
  stage.global = {static_cast<std::size_t>(problem.row_heads()) * stage.local[0],
                  static_cast<std::size_t>(problem.sizes.batch), static_cast<std::size_t>(tiles.blocks(problem))};
  return std::make_unique<StagedKernel>(
      context, fmt::format("{} wgmma {}x{} tokens", problem.name, tiles.own(), tiles.other),
      std::vector<StagedKernel::AnyStage>{describe(context, problem, kept_maps), std::move(stage)});
}

}  // namespace concord::opencl
