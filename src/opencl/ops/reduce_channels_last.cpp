// Sums of images in channels-last layout by channel (cl_kernels/ops/reduce_channels_last.cl), of tokens, and over
// places.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "concord/opencl/formula/channels_last_rows.hpp"
#include "concord/opencl/formula/padded_tokens.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/ops/channels_last.hpp"
#include "concord/opencl/ops/lanes.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {

namespace {

/// Sums over the channels of each token.
PreparedKernel prepare_token_sums(Context& context, const ops::Reduce& op, const KernelRequest& request,
                                  const ChannelsLast& tokens, const EpilogueText& prologue) {
  const std::int64_t blocks = tokens.channels() / ChannelsLast::kBlock;
  const Lanes lanes = lanes_for(context, 4 * blocks, 1);  // a block a lane, where there are enough
  std::vector<std::string> definitions = number_definitions(context, tokens.number());
  for (std::string& definition : lanes.definitions()) definitions.push_back(std::move(definition));
  Stage stage{context.program_from(prologue.text + kernel_source("ops/reduce_tokens.cl"), definitions),
              "token_sums",
              {blocks_of(input(0)), output(0), as_uint(tokens.rows()), as_uint(blocks)}};
  stage.arguments.insert(stage.arguments.end(), prologue.arguments.begin(), prologue.arguments.end());
  lanes.cover(stage, tokens.rows());
  return prepared_channels_last(request,
                                std::make_unique<StagedKernel>(context, fmt::format("{} tokens", op.name()),
                                                               std::vector<StagedKernel::AnyStage>{std::move(stage)}),
                                of_shape(request.inputs[0].shape, request.inputs), {}, tokens.axis());
}

/// Sums of parts and of these by one launch, of which the first `results` channels have a result.
std::vector<StagedKernel::AnyStage> joined_sums(const RowsGrid& grid, std::int64_t results,
                                                const EpilogueText& prologue) {
  const KeptArgument written = kept(size(grid.columns()) * sizeof(std::uint32_t));
  return {Stage{.program = grid.program({}, {"JOINED"}),
                .function = "channel_sums_begin",
                .arguments = {written},
                .global = {size(grid.columns()), 1, 1},
                .local = {1, 1, 1},
                .once = true},
          grid.over_blocks("channel_sums", {blocks_of(input(0)), workspace()}, prologue, {"JOINED"},
                           {written, output(0), as_uint(results)})};
}

std::vector<StagedKernel::AnyStage> sums_and_join(const RowsGrid& grid, std::int64_t channels, std::int64_t results,
                                                  const EpilogueText& prologue) {
  constexpr std::int64_t kWide = 32;  // channels of a group of the second launch
  return {grid.over_blocks("channel_sums", {blocks_of(input(0)), workspace()}, prologue),
          Stage{grid.program({}),
                "channel_sums_join",
                {workspace(), output(0), as_uint(channels), as_uint(results), as_uint(grid.parts())},
                {size(divide_up(results, kWide) * grid.threads()), 1, 1},
                {size(grid.threads()), 1, 1}}};
}

/// Whether it sums the channels of each token.
bool is_by_token(const ops::Reduce& op, std::size_t rank, ChannelAxis axis) {
  return axis == ChannelAxis::last && op.kind() == ops::ReduceKind::sum && op.axes() == std::vector{rank - 1};
}

/// Whether it sums everything but the channels.
bool is_by_channel(const ops::Reduce& op, std::size_t rank, ChannelAxis axis) {
  const std::size_t channels = axis == ChannelAxis::last ? rank - 1 : 1;
  return op.kind() == ops::ReduceKind::sum && op.axes().size() == rank - 1 &&
         std::ranges::find(op.axes(), channels) == op.axes().end();
}

std::unique_ptr<Kernel> channel_sums(Context& context, const ops::Reduce& op, const ChannelsLast& image,
                                     std::int64_t results, const EpilogueText& prologue) {
  const bool is_joined = context.capability().has_matrix_cores();
  const RowsGrid grid(context, image, "ops/reduce_channels_last.cl", 2, is_joined ? 8 : 2);
  std::vector<StagedKernel::AnyStage> stages =
      is_joined ? joined_sums(grid, results, prologue) : sums_and_join(grid, image.channels(), results, prologue);
  return std::make_unique<StagedKernel>(context, fmt::format("{} channels-last", op.name()), std::move(stages),
                                        grid.workspace_bytes());
}

PreparedKernel prepare_channel_sums(Context& context, const ops::Reduce& op, const KernelRequest& request,
                                    const ChannelsLast& image, const EpilogueText& prologue) {
  return prepared_channels_last(request, channel_sums(context, op, image, image.channels(), prologue),
                                of_shape(request.inputs[0].shape, request.inputs), {}, image.axis());
}

/// Such as the gradient of a bias of logits.
PreparedKernel prepare_padded_sums(Context& context, const ops::Reduce& op, const KernelRequest& request,
                                   const PaddedTokens& tokens) {
  const ChannelsLast whole({tokens.tokens(), tokens.blocks_of_token() * ChannelsLast::kBlock}, tokens.number(),
                           ChannelAxis::last);
  PreparedKernel answer = prepared(request, channel_sums(context, op, whole, tokens.channels(), {}));
  answer.input_layouts[0] = request.input_layouts[0];
  return answer;
}

}  // namespace

std::optional<PreparedKernel> prepare_reduce_channels_last(Context& context, const ops::Reduce& op,
                                                           const KernelRequest& request) {
  const ChannelsLast* image = as_channels_last(request.input_layouts[0]);
  const std::size_t rank = request.inputs[0].shape.rank();
  if (const PaddedTokens* tokens = as_padded_tokens(request.input_layouts[0])) {
    if (!is_by_channel(op, rank, ChannelAxis::last)) return {};
    return prepare_padded_sums(context, op, request, *tokens);
  }
  if (image == nullptr || op.kind() != ops::ReduceKind::sum) return {};
  if (is_by_token(op, rank, image->axis())) return prepare_token_sums(context, op, request, *image, {});
  if (image->axis() == ChannelAxis::second && op.axes().size() == rank - 2 && op.axes().front() == 2) {
    return prepare_image_sums(context, request, *image, fmt::format("{} of images channels-last", op.name()));
  }
  if (!is_by_channel(op, rank, image->axis())) return {};
  return prepare_channel_sums(context, op, request, *image, {});
}

bool reduce_supports_prologue(const ops::Reduce& op, std::span<const TensorSpec> inputs, const Expression& prologue,
                              std::span<const TensorSpec> extra) {
  constexpr std::size_t kMostOperands = 3;  // more leave no registers for reads ahead
  const TensorSpec& src = inputs[0];
  return extra.size() < kMostOperands && !prologue.uses_coordinates() &&
         std::ranges::any_of(std::array{ChannelAxis::second, ChannelAxis::last}, [&](ChannelAxis axis) {
           const std::size_t rank = src.shape.rank();
           return channels_last(src, DType::bf16, axis) != nullptr &&
                  (is_by_channel(op, rank, axis) || is_by_token(op, rank, axis)) &&
                  std::ranges::all_of(extra,
                                      [&](const TensorSpec& spec) { return is_block_operand(spec, src.shape, axis); });
         });
}

std::optional<PreparedKernel> prepare_prologued_reduce(Context& context, const ops::Reduce& op,
                                                       const KernelRequest& request, const Prologue& prologue,
                                                       const Epilogue* epilogue) {
  if (epilogue != nullptr) return {};
  const ChannelsLast* image = nullptr;
  for (const std::size_t i : of_shape(request.inputs[0].shape, request.inputs)) {
    if (image == nullptr) image = as_channels_last(request.input_layouts[i]);
  }
  if (image == nullptr) return {};
  const std::size_t rank = request.inputs[0].shape.rank();
  const bool by_token = is_by_token(op, rank, image->axis());
  if (!by_token && !is_by_channel(op, rank, image->axis())) return {};
  const std::optional<EpilogueText> text = block_prologue(request, prologue, image->axis());
  if (!text) return {};
  if (by_token) return prepare_token_sums(context, op, request, *image, *text);
  return prepare_channel_sums(context, op, request, *image, *text);
}

}  // namespace concord::opencl
