// The tiles and plans of products of tokens, and the definitions and arguments of their kernel.
#include "concord/opencl/gemm/hopper/tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "concord/opencl/driver/capability.hpp"
#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/hopper/tensor_map.hpp"
#include "concord/opencl/gemm/matrix_kernel.hpp"
#include "concord/opencl/launch/constant_table.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

constexpr std::int64_t kBlock = 64, kDepth = 64;  // rows of a warpgroup's instruction; values of k of a stage
constexpr std::int64_t kThreads = 384;

struct TokensTile {
  std::int64_t blocks, columns, stages;
  double step;  // seconds for 64 values of k; measured on an H200, as all numbers of plans here
  [[nodiscard]] std::int64_t rows() const { return blocks * kBlock; }
  /// Pieces of results that leave local memory at a time: those of a tile, or of half of it, are a multiple.
  [[nodiscard]] std::int64_t staged() const { return columns == 192 ? 3 : 2; }
  [[nodiscard]] std::int64_t local_bytes() const {
    constexpr std::int64_t kLine = 128, kPiece = kBlock * kLine, kBarriers = 256;
    return stages * (rows() + columns) * kLine + 2 * staged() * kPiece + kBarriers;
  }
};
constexpr std::array<TokensTile, 2> kTiles{{{2, 192, 4, 0.475e-6}, {2, 128, 5, 0.335e-6}}};

const TokensTile& tile_of(const TokensPlan& plan) {
  return *std::ranges::find_if(
      kTiles, [&](const TokensTile& tile) { return tile.blocks == plan.blocks && tile.columns == plan.columns; });
}

std::int64_t tiles_of(const TokensProduct& product, const TokensTile& tile) {
  return divide_up(product.rows, tile.rows()) * divide_up(product.columns, tile.columns);
}

/// Offers the uncut plan of a tile and its cuts.
template <class Offer>
void each_plan(const TokensProduct& product, const TokensTile& tile, std::int64_t units, std::int64_t members,
               const Offer& offer) {
  constexpr double kBeginAndEnd = 4e-6, kOperand = 1.2e-8, kCut = 2.5e-6, kPart = 1.2e-8, kCutBesideWhole = 8e-6;
  constexpr double kApart = 1.8;  // groups at different places of k share fewer reads
  const std::int64_t tiles = members * tiles_of(product, tile);
  const std::int64_t steps = divide_up(product.k, kDepth), rest = tiles % units;
  const bool can_be_counted = tiles * steps <= std::numeric_limits<std::uint32_t>::max() / (units + 1);
  const std::int64_t reads = product.epilogue.operands() + product.appended.operands();
  const double operands = kOperand * static_cast<double>(reads * tile.columns);
  const auto seconds = [&](std::int64_t length) {
    return kBeginAndEnd + operands + static_cast<double>(length) * tile.step;
  };
  offer({tile.blocks, tile.columns, std::min(tiles, units), 0, seconds(divide_up(tiles, units) * steps)});
  if (!can_be_counted) return;
  // All tiles in the same number of parts, one for each group.
  for (std::int64_t parts = 2; tiles * parts <= units && parts <= steps; ++parts) {
    offer({tile.blocks, tile.columns, tiles * parts, tiles,
           seconds(divide_up(steps, parts)) + kCut + kPart * static_cast<double>(parts * tile.columns)});
  }
  // The tiles that do not fill all units a last time, by all groups.
  if (tiles > units && rest != 0 && rest * steps >= units) {
    offer({tile.blocks, tile.columns, units, rest,
           seconds(tiles / units * steps) + kApart * static_cast<double>(divide_up(rest * steps, units)) * tile.step +
               kCutBesideWhole});
  }
}

MapNumber number_of(const TokensProduct& product) {
  return product.precision == Precision::fp16 ? MapNumber::f16 : MapNumber::bf16;
}

/// The map of lines of `inner` numbers.
TensorMap map_of(MapNumber number, std::int64_t inner, std::int64_t lines, std::int64_t pitch, std::int64_t box_inner,
                 std::int64_t box_lines) {
  const std::array<std::int64_t, 2> sizes{inner, lines}, box{box_inner, box_lines};
  const std::array<std::int64_t, 1> strides{pitch * bytes_of(number)};
  return box_map({number, sizes, strides}, box);
}

TensorMap factor_map(const TokensProduct& product, const TokensFactor& factor, std::int64_t lines,
                     std::int64_t tile_lines) {
  const MapNumber number = number_of(product);
  if (factor.is_turned) return map_of(number, lines, product.k, factor.pitch, kBlock, kDepth);
  return map_of(number, product.k, lines, factor.pitch, kDepth, tile_lines);
}

/// A warp writes its rows by itself. Padding of 16-bit numbers is written too.
TensorMap result_map(const TokensProduct& product) {
  const MapNumber number = product.is_fp32 ? MapNumber::f32 : number_of(product);
  const std::int64_t inner = product.is_fp32 ? product.columns : product.pitch;
  return map_of(number, inner, product.rows, product.pitch, 128 / bytes_of(number), kBlock / 4);
}

/// A description of a tensor for the copy engine.
struct MappedTensor {
  TensorMap map;
  BufferArgument tensor;
};

/// Those of a product, as the kernel expects them.
std::vector<MappedTensor> mapped_tensors(const TokensProduct& product, const TokensTile& tile) {
  std::vector<MappedTensor> list{
      {factor_map(product, product.left, product.rows, tile.rows()), product.left.buffer},
      {factor_map(product, product.right, product.columns, tile.columns), product.right.buffer},
      {result_map(product), product.result}};
  if (!product.appended.text.empty()) list.push_back({result_map(product), product.second_result});
  for (MappedTensor& mapped : list) mapped.tensor.element_size = 1;
  return list;
}

/// Writes a map, and sets so many numbers behind it to 0.
Stage begin_stage(Context& context, const MappedTensor& mapped, std::int64_t counters, const KeptArgument& to) {
  return {.program = context.program("gemm/hopper/tokens_begin.cl", {}),
          .function = "gemm_tokens_begin",
          .arguments = {constant_table<TensorMap>(context, {&mapped.map, 1}), to, mapped.tensor,
                        static_cast<std::uint32_t>(counters)},
          .global = {1, 1, 1},
          .local = {1, 1, 1},
          .once = true};
}

/// Whether each work-group has one tile, or a part of one.
bool has_one_work(const TokensProduct& product, const TokensPlan& plan, std::int64_t members) {
  const std::int64_t tiles = members * tiles_of(product, tile_of(plan));
  return tiles <= plan.groups && (plan.cut == 0 || plan.groups % plan.cut == 0);
}

bool is_in_blocks(const BufferArgument& buffer, std::int64_t pitch_bytes) {
  constexpr std::int64_t kBytes = 16;
  return buffer.extra_bytes % kBytes == 0 && pitch_bytes % kBytes == 0;
}

}  // namespace

TokensPlan tokens_plan(const TokensProduct& product, std::int64_t units, std::int64_t members) {
  TokensPlan best{};
  for (const TokensTile& tile : kTiles) {
    each_plan(product, tile, units, members, [&](const TokensPlan& plan) {
      if (best.groups == 0 || plan.seconds < best.seconds) best = plan;
    });
  }
  return best;
}

std::int64_t tiles_of(const TokensProduct& product, const TokensPlan& plan) { return tiles_of(product, tile_of(plan)); }

std::string_view tokens_product_refusal(Context& context, const TokensProduct& product) {
  constexpr std::int64_t kLeast = 8, kMost = std::numeric_limits<std::int32_t>::max(), kMostUnits = 1 << 20;
  if (product.precision != Precision::bf16 && product.precision != Precision::fp16) return "factors have no 16 bits";
  if (product.rows < kLeast || product.columns < kLeast || product.k < kLeast) return "a size is below 8";
  const std::int64_t tiles = divide_up(product.rows, kTiles[1].rows()) * divide_up(product.columns, kBlock);
  const auto elements = [&](const TokensFactor& factor, std::int64_t lines) {
    return factor.pitch * (factor.is_turned ? product.k : lines);
  };
  const std::int64_t largest = std::max(
      {product.rows * product.pitch, elements(product.left, product.rows), elements(product.right, product.columns)});
  if (largest > kMost || tiles > kMostUnits) return "an operand has 2^31 elements or more";
  const bool has_pairs = !product.is_fp32 && !(product.epilogue.text.empty() && product.appended.text.empty());
  if (has_pairs && product.columns % 2 != 0) return "pairs cross the edge";
  const std::int64_t result_bytes = product.is_fp32 ? 4 : 2;
  if (!is_in_blocks(product.left.buffer, 2 * product.left.pitch) ||
      !is_in_blocks(product.right.buffer, 2 * product.right.pitch) ||
      !is_in_blocks(product.result, result_bytes * product.pitch) || !is_in_blocks(product.second_result, 0)) {
    return "lines are not in blocks of 16 bytes";
  }
  const std::size_t local = declarable_local_memory(context.capability(), context.limits().local_memory);
  if (std::ranges::any_of(kTiles, [&](const TokensTile& tile) { return size(tile.local_bytes()) > local; }))
    return "tiles do not fit into local memory";
  return find_gemm_implementation("tma")->device_refusal(context, product.precision);
}

std::unique_ptr<Kernel> prepare_tokens_products(Context& context, std::span<const TokensProduct> members,
                                                std::string_view label) {
  constexpr std::int64_t kBandRows = 1024;  // of C, whose tiles follow each other: their operands stay in the cache
  const TokensProduct& product = members[0];
  const TokensPlan plan = tokens_plan(product, context.limits().compute_units, std::ssize(members));
  const TokensTile& tile = tile_of(plan);
  std::vector<std::string> definitions{std::string(matrix_precision(product.precision)),
                                       fmt::format("TILE_Q={}", tile.columns),
                                       fmt::format("BLOCKS={}", tile.blocks),
                                       fmt::format("STAGES={}", tile.stages),
                                       fmt::format("STAGED={}", tile.staged()),
                                       "BLOCK_CHANNELS=2"};
  if (product.left.is_turned) definitions.emplace_back("LEFT_TURNED");
  if (product.right.is_turned) definitions.emplace_back("RIGHT_TURNED");
  if (product.is_fp32) definitions.emplace_back("RESULT_FLOATS");
  if (plan.cut != 0) definitions.emplace_back("CUT");
  const bool is_together = has_one_work(product, plan, std::ssize(members));
  if (is_together) definitions.emplace_back("TOGETHER");
  if (members.size() > 1) definitions.push_back(fmt::format("MEMBERS={}", members.size()));
  if (!product.epilogue.text.empty()) definitions.emplace_back("HAS_EPILOGUE");
  for (std::string& definition : number_definitions(context, storage_number(product.precision))) {
    definitions.push_back(std::move(definition));
  }

  const auto count = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  std::vector<MappedTensor> mapped;
  for (const TokensProduct& member : members) {
    for (MappedTensor& tensor : mapped_tensors(member, tile)) mapped.push_back(std::move(tensor));
  }
  // Of claims, and of the arrivals of each warpgroup.
  const std::int64_t counters = 1 + plan.cut * (is_together ? 2 : 1);
  const std::size_t maps_bytes = mapped.size() * sizeof(TensorMap);
  const KeptArgument begun = kept(maps_bytes + size(counters) * sizeof(std::uint32_t));
  std::vector<Argument> arguments{count(product.rows),
                                  count(product.columns),
                                  count(divide_up(product.rows, tile.rows())),
                                  count(divide_up(product.columns, tile.columns)),
                                  count(divide_up(product.k, kDepth)),
                                  count(kBandRows / tile.rows()),
                                  further(begun, 0, 1)};
  std::size_t parts_bytes = 0;
  if (plan.cut != 0) {
    arguments.insert(arguments.end(),
                     {count(plan.cut), workspace(0, 16), further(begun, maps_bytes + sizeof(std::uint32_t), 4)});
    // A group has a part of the first and of the last tile of its share.
    parts_bytes = size(2 * plan.groups * tile.rows() * tile.columns) * sizeof(float);
  }
  for (const EpilogueText* text : {&product.epilogue, &product.appended}) {
    arguments.insert(arguments.end(), text->arguments.begin(), text->arguments.end());
  }
  Stage multiply{
      context.program_from(product.epilogue.text + product.appended.text + kernel_source("gemm/hopper/tokens.cl"),
                           definitions),
      "gemm_tokens",
      std::move(arguments),
      {size(plan.groups * kThreads), 1, 1},
      {size(kThreads), 1, 1}};
  std::vector<StagedKernel::AnyStage> stages;
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    stages.emplace_back(
        begin_stage(context, mapped[i], i + 1 == mapped.size() ? counters : 0, further(begun, i * sizeof(TensorMap))));
  }
  stages.emplace_back(std::move(multiply));
  std::string name = fmt::format("{} tokens {}x{}", label, tile.rows(), tile.columns);
  if (plan.cut != 0) name += fmt::format(", {} tiles cut", plan.cut);
  return std::make_unique<StagedKernel>(context, std::move(name), std::move(stages), parts_bytes);
}

}  // namespace concord::opencl
