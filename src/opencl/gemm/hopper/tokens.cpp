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
  /// Pieces of results that leave local memory at a time: those of a tile are a multiple.
  [[nodiscard]] std::int64_t staged() const { return columns == 192 ? 3 : 4; }
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

/// Offers the uncut plan of a tile and its cuts.
template <class Offer>
void each_plan(const TokensProduct& product, const TokensTile& tile, std::int64_t units, const Offer& offer) {
  constexpr double kBeginAndEnd = 4e-6, kOperand = 1.2e-8, kCut = 2.5e-6, kPart = 1.2e-8, kCutBesideWhole = 8e-6;
  constexpr double kApart = 1.8;  // groups at different places of k share fewer reads
  const std::int64_t tiles = divide_up(product.rows, tile.rows()) * divide_up(product.columns, tile.columns);
  const std::int64_t steps = divide_up(product.k, kDepth), rest = tiles % units;
  const bool can_be_counted = tiles * steps <= std::numeric_limits<std::uint32_t>::max() / (units + 1);
  const double operands = kOperand * static_cast<double>(product.epilogue.operands() * tile.columns);
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

constexpr std::size_t kMapBytes = sizeof(TensorMap);

BufferArgument in_bytes(BufferArgument argument) {
  argument.element_size = 1;
  return argument;
}

/// Writes the maps and the counters of arrivals, which follow them.
Stage begin_stage(Context& context, const TokensProduct& product, const TokensTile& tile, std::int64_t cut,
                  const KeptArgument& to) {
  const std::array<TensorMap, 3> maps{factor_map(product, product.left, product.rows, tile.rows()),
                                      factor_map(product, product.right, product.columns, tile.columns),
                                      result_map(product)};
  return {.program = context.program("gemm/hopper/tokens_begin.cl", {}),
          .function = "gemm_tokens_begin",
          .arguments = {constant_table<TensorMap>(context, maps), to, in_bytes(product.left.buffer),
                        in_bytes(product.right.buffer), in_bytes(product.result), static_cast<std::uint32_t>(cut)},
          .global = {1, 1, 1},
          .local = {1, 1, 1},
          .once = true};
}

bool is_in_blocks(const BufferArgument& buffer, std::int64_t pitch_bytes) {
  constexpr std::int64_t kBytes = 16;
  return buffer.extra_bytes % kBytes == 0 && pitch_bytes % kBytes == 0;
}

}  // namespace

TokensPlan tokens_plan(const TokensProduct& product, std::int64_t units) {
  TokensPlan best{};
  for (const TokensTile& tile : kTiles) {
    each_plan(product, tile, units, [&](const TokensPlan& plan) {
      if (best.groups == 0 || plan.seconds < best.seconds) best = plan;
    });
  }
  return best;
}

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
  if (!product.is_fp32 && product.columns % 2 != 0 && !product.epilogue.text.empty()) return "pairs cross the edge";
  const std::int64_t result_bytes = product.is_fp32 ? 4 : 2;
  if (!is_in_blocks(product.left.buffer, 2 * product.left.pitch) ||
      !is_in_blocks(product.right.buffer, 2 * product.right.pitch) ||
      !is_in_blocks(product.result, result_bytes * product.pitch)) {
    return "lines are not in blocks of 16 bytes";
  }
  const std::size_t local = declarable_local_memory(context.capability(), context.limits().local_memory);
  if (std::ranges::any_of(kTiles, [&](const TokensTile& tile) { return size(tile.local_bytes()) > local; }))
    return "tiles do not fit into local memory";
  return find_gemm_implementation("tma")->device_refusal(context, product.precision);
}

std::unique_ptr<Kernel> prepare_tokens_product(Context& context, const TokensProduct& product, std::string_view label) {
  constexpr std::int64_t kBandRows = 1024;  // of C, whose tiles follow each other: their operands stay in the cache
  const TokensPlan plan = tokens_plan(product, context.limits().compute_units);
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
  if (!product.epilogue.text.empty()) definitions.emplace_back("HAS_EPILOGUE");
  for (std::string& definition : number_definitions(context, storage_number(product.precision))) {
    definitions.push_back(std::move(definition));
  }

  const auto count = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  const KeptArgument begun = kept(3 * kMapBytes + size(plan.cut) * sizeof(std::uint32_t));
  std::vector<Argument> arguments{count(product.rows),
                                  count(product.columns),
                                  count(divide_up(product.rows, tile.rows())),
                                  count(divide_up(product.columns, tile.columns)),
                                  count(divide_up(product.k, kDepth)),
                                  count(kBandRows / tile.rows()),
                                  further(begun, 0, 1)};
  std::size_t parts_bytes = 0;
  if (plan.cut != 0) {
    arguments.insert(arguments.end(), {count(plan.cut), workspace(0, 16), further(begun, 3 * kMapBytes, 4)});
    // A group has a part of the first and of the last tile of its share.
    parts_bytes = size(2 * plan.groups * tile.rows() * tile.columns) * sizeof(float);
  }
  arguments.insert(arguments.end(), product.epilogue.arguments.begin(), product.epilogue.arguments.end());
  Stage multiply{context.program_from(product.epilogue.text + kernel_source("gemm/hopper/tokens.cl"), definitions),
                 "gemm_tokens",
                 std::move(arguments),
                 {size(plan.groups * kThreads), 1, 1},
                 {size(kThreads), 1, 1}};
  std::string name = fmt::format("{} tokens {}x{}", label, tile.rows(), tile.columns);
  if (plan.cut != 0) name += fmt::format(", {} tiles cut", plan.cut);
  return std::make_unique<StagedKernel>(
      context, std::move(name),
      std::vector<StagedKernel::AnyStage>{begin_stage(context, product, tile, plan.cut, begun), std::move(multiply)},
      parts_bytes);
}

}  // namespace concord::opencl
