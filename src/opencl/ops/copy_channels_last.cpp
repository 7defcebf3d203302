// Concat and slice of images in channels-last layout, and of tokens.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/ops/channels_last.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

/// Blocks `begin` to `begin` + `blocks` of each of the result's rows, from a run of inputs.
struct ConcatRun {
  std::size_t first_input, inputs;
  std::int64_t begin, blocks;
};

/// The text in front of ops/concat_channels_last.cl.
std::string concat_text(std::size_t sources) {
  std::string parameters, pick, end;
  for (std::size_t k = 0; k < sources; ++k) {
    parameters += fmt::format("{0}__global const uint4 *restrict s{1}, ulong s{1}_offset, const uint s{1}_blocks",
                              k == 0 ? "" : ", ", k);
    const std::string value = fmt::format("value = s{0}[s{0}_offset + (ulong)row * s{0}_blocks + at];", k);
    if (k + 1 == sources) {
      pick += value;
    } else {
      pick += fmt::format("if (at < s{0}_blocks) {1} else {{ at -= s{0}_blocks; ", k, value);
      end += " }";
    }
  }
  return fmt::format("#define SOURCE_PARAMETERS {}\n#define PICK {}{}\n", parameters, pick, end);
}

Stage concat_stage(Context& context, const ConcatRun& run, std::int64_t rows, const std::vector<std::int64_t>& blocks,
                   std::int64_t all_blocks) {
  std::vector<Argument> arguments;
  for (std::size_t k = run.first_input; k < run.first_input + run.inputs; ++k) {
    arguments.emplace_back(blocks_of(input(k)));
    arguments.emplace_back(as_uint(blocks[k]));
  }
  arguments.emplace_back(blocks_of(output(0)));
  for (const std::int64_t value : {rows * run.blocks, run.blocks, all_blocks, run.begin}) {
    arguments.emplace_back(as_uint(value));
  }
  Stage stage{context.program_from(concat_text(run.inputs) + kernel_source("ops/concat_channels_last.cl")),
              "concat_channels_last", std::move(arguments)};
  blocking_of(context.limits(), rows * run.blocks, 1).apply(stage);
  return stage;
}

/// Rows of blocks that lie one behind the other in a tensor that is cut, or joined, along one of its axes.
struct CutRows {
  std::int64_t rows;
  std::int64_t inner;  // numbers of a row for each index along the axis

  [[nodiscard]] std::int64_t blocks(const TensorSpec& spec) const {
    return spec.shape.elements() / rows / ChannelsLast::kBlock;
  }
};

/// Nothing where what is cut off does not lie together: places of an image.
std::optional<CutRows> rows_before(std::size_t cut, const Shape& shape, ChannelAxis axis) {
  if (axis == ChannelAxis::second && cut > 1) return {};
  CutRows result{1, 1};
  const bool is_channels = cut == (axis == ChannelAxis::last ? shape.rank() - 1 : 1);
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (i < cut || (is_channels && i != cut)) result.rows *= shape[i];
    if (i > cut && !is_channels) result.inner *= shape[i];
  }
  return result;
}

/// The axis along which the slice removes something, in whole blocks; nothing for several or for steps.
std::optional<std::size_t> cut_axis(const ops::Slice& op, const Shape& part, const Shape& whole) {
  std::optional<std::size_t> found;
  for (std::size_t axis = 0; axis < whole.rank(); ++axis) {
    if (op.step()[axis] != 1) return {};
    if (part[axis] == whole[axis]) continue;
    if (found) return {};
    found = axis;
  }
  return found;
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
  if (!axis) return {};
  const std::optional<CutRows> cut = rows_before(op.axis(), request.outputs[0].shape, *axis);
  if (!cut) return {};
  constexpr std::size_t kMostInputs = 16;  // of a launch
  std::vector<std::int64_t> blocks;
  for (const TensorSpec& input : request.inputs) blocks.push_back(cut->blocks(input));
  std::vector<StagedKernel::AnyStage> stages;
  ConcatRun run{0, 0, 0, 0};
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    ++run.inputs;
    run.blocks += blocks[k];
    if (run.inputs < kMostInputs && k + 1 < blocks.size()) continue;
    stages.emplace_back(concat_stage(context, run, cut->rows, blocks, cut->blocks(request.outputs[0])));
    run = {k + 1, 0, run.begin + run.blocks, 0};
  }
  return finish(context, request, "concat channels-last", std::move(stages), *axis);
}

std::optional<PreparedKernel> prepare_slice_channels_last(Context& context, const ops::Slice& op,
                                                          const KernelRequest& request) {
  const std::optional<ChannelAxis> axis = axis_of_all(request);
  const Shape &part = request.outputs[0].shape, &whole = request.inputs[0].shape;
  const std::optional<std::size_t> at = cut_axis(op, part, whole);
  if (!axis || !at) return {};
  const std::optional<CutRows> cut = rows_before(*at, whole, *axis);
  const std::int64_t begin = op.start()[*at];
  if (!cut || begin * cut->inner % ChannelsLast::kBlock != 0) return {};
  const std::int64_t blocks = cut->blocks(request.outputs[0]), count = cut->rows * blocks;
  std::vector<Argument> arguments{blocks_of(input(0)), blocks_of(output(0))};
  for (const std::int64_t value :
       {count, blocks, cut->blocks(request.inputs[0]), begin * cut->inner / ChannelsLast::kBlock}) {
    arguments.emplace_back(as_uint(value));
  }
  Stage stage{context.program("formula/channels_last.cl", {"NUMBERS=BF16"}), "channels_last_slice",
              std::move(arguments)};
  blocking_of(context.limits(), count, 1).apply(stage);
  return finish(context, request, "slice channels-last", {std::move(stage)}, *axis);
}

}  // namespace concord::opencl
