// Normalisation of rows and its gradient on OpenCL devices: one kernel each.
#include "concord/ops/row_norm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <span>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/ops/lanes.hpp"

namespace concord::opencl {
namespace {

/// A power of two by which the sum of `length` numbers does not overflow where their mean does not.
float share_of(std::int64_t length) {
  return std::ldexp(1.0F, -static_cast<int>(std::bit_width(static_cast<std::uint64_t>(length))));
}

/// Items of a token, each with some of its blocks of channels in registers.
struct TokenLanes {
  std::int64_t lanes, blocks, tokens;  // of a group

  explicit TokenLanes(std::int64_t all_blocks) {
    constexpr std::uint64_t kBlocks = 4, kMostLanes = 256;
    constexpr std::int64_t kThreads = 128;
    lanes = static_cast<std::int64_t>(
        std::min(std::bit_ceil((static_cast<std::uint64_t>(all_blocks) + kBlocks - 1) / kBlocks), kMostLanes));
    blocks = divide_up(all_blocks, lanes);
    tokens = std::max<std::int64_t>(1, kThreads / lanes);
  }
  [[nodiscard]] std::vector<std::string> definitions() const {
    return {fmt::format("LANES={}", lanes), fmt::format("ROWS={}", tokens), fmt::format("BLOCKS={}", blocks)};
  }
};

/// Over the channels of tokens in 16 bits; nothing where the first operand lies otherwise. `tokens` are the inputs that
/// lie so.
template <class Op>
std::optional<PreparedKernel> prepare_tokens(Context& context, const Op& op, const KernelRequest& request,
                                             const std::string& function, std::span<const std::size_t> tokens,
                                             const std::vector<Argument>& last) {
  constexpr std::int64_t kMostBlocks = 8;  // of an item
  const DType number = storage_number(request.precision);
  const Shape& shape = request.outputs[0].shape;
  const ChannelsLast* const found = first_channels_last(request, ChannelAxis::last);
  if (found == nullptr || op.axis() + 1 != shape.rank() ||
      !channels_last(request.outputs[0], number, ChannelAxis::last)) {
    return std::nullopt;
  }
  const ChannelsLast dst(shape, number, ChannelAxis::last);
  const std::int64_t blocks = dst.channels() / ChannelsLast::kBlock;
  const TokenLanes lanes(blocks);
  if (lanes.blocks > kMostBlocks || size(lanes.lanes * lanes.tokens) > context.limits().max_work_group) {
    return std::nullopt;
  }
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    arguments.emplace_back(std::ranges::find(tokens, i) != tokens.end() ? blocks_of(input(i)) : input(i));
  }
  for (std::size_t k = 0; k < request.outputs.size(); ++k) {
    arguments.emplace_back(k == 0 ? blocks_of(output(0)) : output(k));
  }
  arguments.insert(arguments.end(), {as_uint(dst.rows()), as_uint(blocks), share_of(dst.channels())});
  arguments.insert(arguments.end(), last.begin(), last.end());
  std::vector<std::string> definitions = number_definitions(context, number);
  for (std::string& definition : lanes.definitions()) definitions.push_back(std::move(definition));
  if (op.centred()) definitions.emplace_back("CENTRED");
  const std::size_t threads = size(lanes.lanes * lanes.tokens);
  Stage stage{context.program("ops/row_norm_tokens.cl", definitions),
              function,
              std::move(arguments),
              {size(divide_up(dst.rows(), lanes.tokens)) * threads, 1, 1},
              {threads, 1, 1}};
  return prepared_channels_last(request,
                                std::make_unique<StagedKernel>(context, fmt::format("{} tokens", op.name()),
                                                               std::vector<StagedKernel::AnyStage>{std::move(stage)}),
                                tokens, std::array<std::size_t, 1>{0}, ChannelAxis::last);
}

template <class Op>
PreparedKernel prepare_rows(Context& context, const Op& op, const KernelRequest& request, const std::string& function,
                            std::vector<Argument> arguments) {
  const ops::RowSizes sizes = ops::row_sizes(request.outputs[0].shape, op.axis());
  const Lanes lanes = lanes_for(context, sizes.length, 1);
  std::vector<std::string> definitions = lanes.definitions();
  if (op.centred()) definitions.emplace_back("CENTRED");
  arguments.insert(
      arguments.begin() + static_cast<std::ptrdiff_t>(request.inputs.size() + request.outputs.size()),
      {static_cast<std::uint64_t>(sizes.rows), static_cast<std::uint64_t>(sizes.length), share_of(sizes.length)});
  Stage stage{context.program("ops/row_norm.cl", definitions), function, std::move(arguments)};
  lanes.cover(stage, sizes.rows);
  return prepared(request, std::make_unique<StagedKernel>(context, std::string(op.name()),
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

/// The greatest power of two whose square times epsilon is not above 1.
float most_unit(float epsilon) {
  constexpr int kMost = 126;
  return std::ldexp(1.0F, epsilon > 0 ? std::min(kMost, -std::ilogb(epsilon) / 2 - 1) : kMost);
}

PreparedKernel prepare_row_norm(Context& context, const ops::RowNorm& op, const KernelRequest& request) {
  if (auto kernel = prepare_tokens(context, op, request, "row_norm_tokens", std::array<std::size_t, 1>{0},
                                   {op.epsilon(), most_unit(op.epsilon())})) {
    return *std::move(kernel);
  }
  std::vector<Argument> arguments{input(0), output(0), output(1)};
  if (op.centred()) arguments.emplace_back(output(2));
  arguments.emplace_back(op.epsilon());
  arguments.emplace_back(most_unit(op.epsilon()));
  return prepare_rows(context, op, request, "row_norm_forward", std::move(arguments));
}

PreparedKernel prepare_row_norm_backward(Context& context, const ops::RowNormBackward& op,
                                         const KernelRequest& request) {
  if (auto kernel =
          prepare_tokens(context, op, request, "row_norm_tokens_backward", std::array<std::size_t, 2>{0, 1}, {})) {
    return *std::move(kernel);
  }
  return prepare_rows(context, op, request, "row_norm_backward", {input(0), input(1), input(2), output(0)});
}

}  // namespace

void add_row_norm(Kernels& kernels) {
  kernels.add<ops::RowNorm, prepare_row_norm>();
  kernels.add<ops::RowNormBackward, prepare_row_norm_backward>();
}

}  // namespace concord::opencl
