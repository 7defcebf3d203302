// Concat and slice of channels, for images in channels-last layout.
#include <algorithm>
#include <array>
#include <numeric>

#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/ops/channels_last.hpp"

namespace concord::opencl {
namespace {

/// Some channels of an operand, in blocks, from block `begin` of all its `blocks` a row on.
struct Channels {
  BufferArgument operand;
  std::int64_t blocks, begin;
};

Stage copy_stage(Context& context, const ChannelsLast& image, std::int64_t blocks, const Channels& from,
                 const Channels& to) {
  const std::int64_t count = image.rows() * blocks;
  std::vector<Argument> arguments{blocks_of(from.operand), blocks_of(to.operand)};
  for (const std::int64_t value : {count, blocks, from.blocks, from.begin, to.blocks, to.begin}) {
    arguments.emplace_back(static_cast<std::uint32_t>(value));
  }
  Stage stage{context.program("formula/channels_last.cl", {"NUMBERS=BF16"}), "channels_last_copy",
              std::move(arguments)};
  blocking_of(context.limits(), count, 1).apply(stage);
  return stage;
}

std::size_t axis_of(ChannelAxis axis, const Shape& shape) { return axis == ChannelAxis::last ? shape.rank() - 1 : 1; }

std::int64_t blocks_of_row(const TensorSpec& spec, ChannelAxis axis) {
  return spec.shape[axis_of(axis, spec.shape)] / ChannelsLast::kBlock;
}

/// Whether the slice removes only whole blocks of channels.
bool cuts_channels(const ops::Slice& op, const Shape& part, const Shape& whole, std::size_t channels) {
  for (std::size_t axis = 0; axis < whole.rank(); ++axis) {
    if (axis != channels && part[axis] != whole[axis]) return false;
    if (op.step()[axis] != 1) return false;
  }
  return op.start()[channels] % ChannelsLast::kBlock == 0;
}

PreparedKernel finish(Context& context, const KernelRequest& request, std::string name,
                      std::vector<StagedKernel::AnyStage> stages, ChannelAxis axis) {
  std::vector<std::size_t> inputs(request.inputs.size());
  std::iota(inputs.begin(), inputs.end(), std::size_t{0});
  return prepared_channels_last(request, std::make_unique<StagedKernel>(context, std::move(name), std::move(stages)),
                                inputs, std::array<std::size_t, 1>{0}, axis);
}

/// The axis of the channels where an input lies channels-last and all others, and the result, can.
std::optional<ChannelAxis> axis_of_all(const KernelRequest& request) {
  const std::optional<ChannelAxis> axis = channel_axis(request);
  if (!axis) return std::nullopt;
  const DType number = storage_number(request.precision);
  const auto can = [&](const TensorSpec& spec) {
    return spec.dtype == DType::f32 && channels_last(spec, number, *axis) != nullptr;
  };
  return std::ranges::all_of(request.inputs, can) && can(request.outputs[0]) ? axis : std::nullopt;
}

}  // namespace

std::optional<PreparedKernel> prepare_concat_channels_last(Context& context, const ops::Concat& op,
                                                           const KernelRequest& request) {
  const std::optional<ChannelAxis> axis = axis_of_all(request);
  if (!axis || op.axis() != axis_of(*axis, request.outputs[0].shape)) return {};
  std::vector<StagedKernel::AnyStage> stages;
  std::int64_t position = 0;
  for (std::size_t k = 0; k < request.inputs.size(); ++k) {
    const ChannelsLast image(request.inputs[k].shape, storage_number(request.precision), *axis);
    const std::int64_t blocks = blocks_of_row(request.inputs[k], *axis);
    stages.emplace_back(copy_stage(context, image, blocks, {input(k), blocks, 0},
                                   {output(0), blocks_of_row(request.outputs[0], *axis), position}));
    position += blocks;
  }
  return finish(context, request, "concat channels-last", std::move(stages), *axis);
}

std::optional<PreparedKernel> prepare_slice_channels_last(Context& context, const ops::Slice& op,
                                                          const KernelRequest& request) {
  const std::optional<ChannelAxis> axis = axis_of_all(request);
  const Shape &part = request.outputs[0].shape, &whole = request.inputs[0].shape;
  if (!axis || !cuts_channels(op, part, whole, axis_of(*axis, whole))) return {};
  const ChannelsLast image(part, storage_number(request.precision), *axis);
  const std::int64_t blocks = blocks_of_row(request.outputs[0], *axis);
  const std::int64_t begin = op.start()[axis_of(*axis, whole)] / ChannelsLast::kBlock;
  return finish(context, request, "slice channels-last",
                {copy_stage(context, image, blocks, {input(0), blocks_of_row(request.inputs[0], *axis), begin},
                            {output(0), blocks, 0})},
                *axis);
}

}  // namespace concord::opencl
