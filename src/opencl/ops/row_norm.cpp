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
#include "concord/opencl/launch/strides.hpp"
#include "concord/opencl/ops/lanes.hpp"
#include "concord/opencl/program/source.hpp"

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

/// How the two kernels compute an operator. `inputs`: without those of the epilogue. `tokens`: the inputs that are
/// tokens where the result is. `numbers`: the last ones of the kernel.
struct Computation {
  std::string tokens_function, rows_function;
  std::size_t inputs, tokens;
  std::vector<Argument> numbers;
};

/// Over the channels of tokens in 16 bits; nothing where no operand lies so.
template <class Op>
std::optional<PreparedKernel> prepare_tokens(Context& context, const Op& op, const KernelRequest& request,
                                             const Computation& computation, const Prologue* prologue,
                                             const Epilogue* epilogue) {
  constexpr std::int64_t kMostBlocks = 8;  // of an item
  const DType number = storage_number(request.precision);
  const Shape& shape = request.outputs[0].shape;
  const bool any_tokens =
      std::ranges::any_of(std::span(request.input_layouts).first(computation.tokens), [](const Layout& layout) {
        const ChannelsLast* const found = as_channels_last(layout);
        return found != nullptr && found->axis() == ChannelAxis::last;
      });
  if (!any_tokens || op.axis() + 1 != shape.rank() || !channels_last(request.outputs[0], number, ChannelAxis::last)) {
    return std::nullopt;
  }
  const ChannelsLast dst(shape, number, ChannelAxis::last);
  const std::int64_t blocks = dst.channels() / ChannelsLast::kBlock;
  const TokenLanes lanes(blocks);
  if (lanes.blocks > kMostBlocks || size(lanes.lanes * lanes.tokens) > context.limits().max_work_group) {
    return std::nullopt;
  }
  std::optional<EpilogueText> before = EpilogueText{}, behind = EpilogueText{};
  if (prologue != nullptr) before = block_prologue(request, *prologue, ChannelAxis::last);
  if (epilogue != nullptr) behind = block_epilogue(request, *epilogue, ChannelAxis::last);
  if (!before || !behind) return std::nullopt;
  std::vector<Argument> packed;
  for (std::size_t i = 0; i < computation.inputs; ++i) {
    packed.emplace_back(i < computation.tokens ? blocks_of(input(i)) : input(i));
  }
  for (std::size_t k = 0; k < request.outputs.size(); ++k) {
    packed.emplace_back(k == 0 ? blocks_of(output(0)) : output(k));
  }
  packed.insert(packed.end(), {as_uint(dst.rows()), as_uint(blocks), share_of(dst.channels())});
  packed.insert(packed.end(), computation.numbers.begin(), computation.numbers.end());
  std::vector<Argument> arguments{PackedArguments{std::move(packed)}};
  arguments.insert(arguments.end(), before->arguments.begin(), before->arguments.end());
  arguments.insert(arguments.end(), behind->arguments.begin(), behind->arguments.end());
  std::vector<std::string> definitions = number_definitions(context, number);
  for (std::string& definition : lanes.definitions()) definitions.push_back(std::move(definition));
  if (op.centred()) definitions.emplace_back("CENTRED");
  const std::size_t threads = size(lanes.lanes * lanes.tokens);
  Stage stage{context.program_from(before->text + behind->text + kernel_source("ops/row_norm_tokens.cl"), definitions),
              computation.tokens_function,
              std::move(arguments),
              {size(divide_up(dst.rows(), lanes.tokens)) * threads, 1, 1},
              {threads, 1, 1}};
  return prepared_channels_last(request,
                                std::make_unique<StagedKernel>(context, fmt::format("{} tokens", op.name()),
                                                               std::vector<StagedKernel::AnyStage>{std::move(stage)}),
                                like_result(request, request.inputs), std::array<std::size_t, 1>{0}, ChannelAxis::last);
}

/// The strides of an operand of the epilogue from row to row, and within a row.
std::optional<std::vector<std::int64_t>> epilogue_strides(const Shape& operand, const Shape& dst, std::size_t axis) {
  return grouped_strides(operand, dst, std::array<std::size_t, 2>{axis, dst.rank()});
}

template <class Op>
PreparedKernel prepare_rows(Context& context, const Op& op, const KernelRequest& request,
                            const Computation& computation, const Epilogue* epilogue) {
  const Shape& dst = request.outputs[0].shape;
  const ops::RowSizes sizes = ops::row_sizes(dst, op.axis());
  EpilogueText text;
  if (epilogue != nullptr) {
    std::vector<EpilogueOperand> extra;
    for (std::size_t i = epilogue->first_extra; i < request.inputs.size(); ++i) {
      const std::vector<std::int64_t> strides = epilogue_strides(request.inputs[i].shape, dst, op.axis()).value();
      extra.push_back({i, request.inputs[i].dtype, 0, strides[0], 0, strides[1]});
    }
    text = gemm_epilogue(epilogue->expression, extra);
  }
  std::vector<Argument> packed;
  for (std::size_t i = 0; i < computation.inputs; ++i) packed.emplace_back(input(i));
  for (std::size_t k = 0; k < request.outputs.size(); ++k) packed.emplace_back(output(k));
  packed.insert(packed.end(), {as_ulong(sizes.rows), as_ulong(sizes.length), share_of(sizes.length)});
  packed.insert(packed.end(), computation.numbers.begin(), computation.numbers.end());
  std::vector<Argument> arguments{PackedArguments{std::move(packed)}};
  arguments.insert(arguments.end(), text.arguments.begin(), text.arguments.end());
  const Lanes lanes = lanes_for(context, sizes.length, 1);
  std::vector<std::string> definitions = lanes.definitions();
  if (op.centred()) definitions.emplace_back("CENTRED");
  Stage stage{context.program_from(text.text + kernel_source("ops/row_norm.cl"), definitions),
              computation.rows_function, std::move(arguments)};
  lanes.cover(stage, sizes.rows);
  return prepared(request, std::make_unique<StagedKernel>(context, std::string(op.name()),
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

/// The greatest power of two whose square times epsilon is not above 1.
float most_unit(float epsilon) {
  constexpr int kMost = 126;
  return std::ldexp(1.0F, epsilon > 0 ? std::min(kMost, -std::ilogb(epsilon) / 2 - 1) : kMost);
}

Computation computation_of(const ops::RowNorm& op) {
  return {"row_norm_tokens", "row_norm_forward", 1, 1, {op.epsilon(), most_unit(op.epsilon())}};
}
Computation computation_of(const ops::RowNormBackward&) {
  return {"row_norm_tokens_backward", "row_norm_backward", 3, 2, {}};
}

template <class Op>
PreparedKernel prepare_with(Context& context, const Op& op, const KernelRequest& request, const Epilogue* epilogue) {
  const Computation computation = computation_of(op);
  if (auto kernel = prepare_tokens(context, op, request, computation, nullptr, epilogue)) return *std::move(kernel);
  return prepare_rows(context, op, request, computation, epilogue);
}

template <class Op>
PreparedKernel prepare(Context& context, const Op& op, const KernelRequest& request) {
  return prepare_with(context, op, request, nullptr);
}

template <class Op>
PreparedKernel prepare_fused_row_norm(Context& context, const Op& op, const KernelRequest& request,
                                      const Epilogue& epilogue) {
  return prepare_with(context, op, request, &epilogue);
}

template <class Op>
bool row_norm_supports_epilogue(const Op& op, std::span<const TensorSpec>, const TensorSpec& output,
                                const Expression& epilogue, std::span<const TensorSpec> extra) {
  if (epilogue.uses_coordinates() || epilogue.results().size() != 1 || output.dtype != DType::f32) return false;
  return std::ranges::all_of(
      extra, [&](const TensorSpec& spec) { return epilogue_strides(spec.shape, output.shape, op.axis()).has_value(); });
}

std::optional<PreparedKernel> prepare_prologued_row_norm(Context& context, const ops::RowNormBackward& op,
                                                         const KernelRequest& request, const Prologue& prologue,
                                                         const Epilogue* epilogue) {
  return prepare_tokens(context, op, request, computation_of(op), &prologue, epilogue);
}

bool row_norm_supports_prologue(const ops::RowNormBackward& op, std::span<const TensorSpec> inputs,
                                const Expression& prologue, std::span<const TensorSpec> extra) {
  constexpr std::size_t kMostOperands = 3;  // a row is in registers
  const TensorSpec& diff_dst = inputs[0];
  return extra.size() < kMostOperands && !prologue.uses_coordinates() && op.axis() + 1 == diff_dst.shape.rank() &&
         channels_last(diff_dst, DType::bf16, ChannelAxis::last) != nullptr &&
         std::ranges::all_of(
             extra, [&](const TensorSpec& spec) { return is_block_operand(spec, diff_dst.shape, ChannelAxis::last); });
}

}  // namespace

void add_row_norm(Kernels& kernels) {
  kernels.add<ops::RowNorm, prepare<ops::RowNorm>>();
  kernels.add<ops::RowNormBackward, prepare<ops::RowNormBackward>>();
  kernels.add_fused<ops::RowNorm, row_norm_supports_epilogue<ops::RowNorm>, prepare_fused_row_norm<ops::RowNorm>>();
  kernels.add_fused<ops::RowNormBackward, row_norm_supports_epilogue<ops::RowNormBackward>,
                    prepare_fused_row_norm<ops::RowNormBackward>>();
  kernels.add_prologued<ops::RowNormBackward, row_norm_supports_prologue, prepare_prologued_row_norm>();
}

}  // namespace concord::opencl
