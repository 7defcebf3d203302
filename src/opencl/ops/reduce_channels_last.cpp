// Sums of images in channels-last layout by channel (cl_kernels/ops/reduce_channels_last.cl), of tokens, and over
// places.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "concord/opencl/formula/channels_last_rows.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/ops/channels_last.hpp"
#include "concord/opencl/ops/lanes.hpp"

namespace concord::opencl {

namespace {

/// Sums over the channels of each token.
PreparedKernel prepare_token_sums(Context& context, const ops::Reduce& op, const KernelRequest& request,
                                  const ChannelsLast& tokens) {
  const std::int64_t blocks = tokens.channels() / ChannelsLast::kBlock;
  const Lanes lanes = lanes_for(context, 4 * blocks, 1);  // a block a lane, where there are enough
  std::vector<std::string> definitions = number_definitions(context, tokens.number());
  for (std::string& definition : lanes.definitions()) definitions.push_back(std::move(definition));
  Stage stage{context.program("ops/reduce_tokens.cl", definitions),
              "token_sums",
              {blocks_of(input(0)), output(0), as_uint(tokens.rows()), as_uint(blocks)}};
  lanes.cover(stage, tokens.rows());
  return prepared_channels_last(request,
                                std::make_unique<StagedKernel>(context, fmt::format("{} tokens", op.name()),
                                                               std::vector<StagedKernel::AnyStage>{std::move(stage)}),
                                std::array<std::size_t, 1>{0}, {}, tokens.axis());
}

/// Sums of parts and of these by one launch.
std::vector<StagedKernel::AnyStage> joined_sums(const RowsGrid& grid) {
  const KeptArgument written = kept(size(grid.columns()) * sizeof(std::uint32_t));
  return {Stage{.program = grid.program({}, {"JOINED"}),
                .function = "channel_sums_begin",
                .arguments = {written},
                .global = {size(grid.columns()), 1, 1},
                .local = {1, 1, 1},
                .once = true},
          grid.over_blocks("channel_sums", {blocks_of(input(0)), workspace()}, {}, {"JOINED"}, {written, output(0)})};
}

std::vector<StagedKernel::AnyStage> sums_and_join(const RowsGrid& grid, std::int64_t channels) {
  constexpr std::int64_t kWide = 32;  // channels of a group of the second launch
  return {grid.over_blocks("channel_sums", {blocks_of(input(0)), workspace()}),
          Stage{grid.program({}),
                "channel_sums_join",
                {workspace(), output(0), as_uint(channels), as_uint(grid.parts())},
                {size(divide_up(channels, kWide) * grid.threads()), 1, 1},
                {size(grid.threads()), 1, 1}}};
}

}  // namespace

std::optional<PreparedKernel> prepare_reduce_channels_last(Context& context, const ops::Reduce& op,
                                                           const KernelRequest& request) {
  const ChannelsLast* image = as_channels_last(request.input_layouts[0]);
  if (image == nullptr || op.kind() != ops::ReduceKind::sum) return {};
  const std::size_t rank = request.inputs[0].shape.rank();
  const std::vector<std::size_t>& axes = op.axes();
  if (image->axis() == ChannelAxis::last && axes == std::vector{rank - 1}) {
    return prepare_token_sums(context, op, request, *image);
  }
  if (image->axis() == ChannelAxis::second && axes.size() == rank - 2 && axes.front() == 2) {
    return prepare_image_sums(context, request, *image, fmt::format("{} of images channels-last", op.name()));
  }
  // Over everything but the channels.
  const std::size_t channels = image->axis() == ChannelAxis::last ? rank - 1 : 1;
  const bool by_channel = axes.size() == rank - 1 && std::ranges::find(axes, channels) == axes.end();
  if (!by_channel) return {};
  const bool is_joined = context.capability().has_matrix_cores();
  const RowsGrid grid(context, *image, "ops/reduce_channels_last.cl", 2, is_joined ? 8 : 2);
  std::vector<StagedKernel::AnyStage> stages = is_joined ? joined_sums(grid) : sums_and_join(grid, image->channels());
  return prepared_channels_last(request,
                                std::make_unique<StagedKernel>(context, fmt::format("{} channels-last", op.name()),
                                                               std::move(stages), grid.workspace_bytes()),
                                std::array<std::size_t, 1>{0}, {}, image->axis());
}

}  // namespace concord::opencl
