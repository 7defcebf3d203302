// Sums of images in channels-last layout, and of tokens: by channel (channel_sums.hpp), by token, and over places.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "concord/opencl/formula/padded_tokens.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/ops/channel_sums.hpp"
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

/// Whether it sums the channels of each token.
bool is_by_token(const ops::Reduce& op, std::size_t rank, ChannelAxis axis) {
  return axis == ChannelAxis::last && op.kind() == ops::ReduceKind::sum && op.axes() == std::vector{rank - 1};
}

PreparedKernel prepare_sums_of(Context& context, const KernelRequest& request, const ChannelSum& sum) {
  if (sum.is_of_rows()) return prepared(request, prepare_channel_sums(context, {&request, 1}));
  return prepared_channels_last(request, prepare_channel_sums(context, {&request, 1}),
                                of_shape(request.inputs[0].shape, request.inputs), {}, sum.image.axis());
}

/// Such as the gradient of a bias of logits.
PreparedKernel prepare_padded_sums(Context& context, const KernelRequest& request) {
  PreparedKernel answer = prepared(request, prepare_channel_sums(context, {&request, 1}));
  answer.input_layouts[0] = request.input_layouts[0];
  return answer;
}

}  // namespace

std::optional<PreparedKernel> prepare_reduce_channels_last(Context& context, const ops::Reduce& op,
                                                           const KernelRequest& request) {
  const std::optional<ChannelSum> by_channel = channel_sum_of(context, request);
  if (as_padded_tokens(request.input_layouts[0]) != nullptr) {
    return by_channel ? std::optional(prepare_padded_sums(context, request)) : std::nullopt;
  }
  if (by_channel) return prepare_sums_of(context, request, *by_channel);
  const ChannelsLast* image = as_channels_last(request.input_layouts[0]);
  const std::size_t rank = request.inputs[0].shape.rank();
  if (image == nullptr || op.kind() != ops::ReduceKind::sum) return {};
  if (is_by_token(op, rank, image->axis())) return prepare_token_sums(context, op, request, *image, {});
  if (image->axis() == ChannelAxis::second && op.axes().size() == rank - 2 && op.axes().front() == 2) {
    return prepare_image_sums(context, request, *image, fmt::format("{} of images channels-last", op.name()));
  }
  return {};
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
  if (const auto by_channel = channel_sum_of(context, request)) return prepare_sums_of(context, request, *by_channel);
  const ChannelsLast* image = nullptr;
  for (const std::size_t i : of_shape(request.inputs[0].shape, request.inputs)) {
    if (image == nullptr) image = as_channels_last(request.input_layouts[i]);
  }
  if (image == nullptr || !is_by_token(op, request.inputs[0].shape.rank(), image->axis())) return {};
  const std::optional<EpilogueText> text = block_prologue(request, prologue, image->axis());
  return text ? std::optional(prepare_token_sums(context, op, request, *image, *text)) : std::nullopt;
}

}  // namespace concord::opencl
