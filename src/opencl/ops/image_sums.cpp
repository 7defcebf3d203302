// Sums over the places of every image and channel, for images in channels-last layout (cl_kernels/ops/image_sums.cl).
// Used by sums over these axes and by global average pooling.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/ops/channels_last.hpp"

namespace concord::opencl {
namespace {

/// A work-group has `lanes` neighbouring blocks of channels and one of `parts` parts of an image's places.
struct ImageGrid {
  std::int64_t columns, lanes, threads, part, parts;
};

ImageGrid grid_of(const Context& context, const ChannelsLast& image) {
  // Sixteen lanes read 256 adjacent bytes; as few lanes as possible are idle. A second launch pays for parts of some
  // iterations of an item, where there are too few groups.
  constexpr std::int64_t kMostLanes = 16, kUnroll = 4, kLeastTurns = 4, kGroupsPerUnit = 8;
  const auto most = static_cast<std::int64_t>(std::min<std::size_t>(256, context.limits().max_work_group));
  const std::int64_t blocks = image.channels() / ChannelsLast::kBlock;
  ImageGrid grid{};
  grid.columns = divide_up(blocks, std::min(kMostLanes, most));
  grid.lanes = divide_up(blocks, grid.columns);
  const std::int64_t rows = most / grid.lanes, turn = rows * kUnroll;
  grid.threads = rows * grid.lanes;
  const std::int64_t wanted = divide_up(kGroupsPerUnit * context.limits().compute_units, grid.columns * image.images());
  grid.part = round_up(std::max(divide_up(image.places(), wanted), kLeastTurns * turn), turn);
  grid.parts = divide_up(image.places(), grid.part);
  return grid;
}

}  // namespace

PreparedKernel prepare_image_sums(Context& context, const KernelRequest& request, const ChannelsLast& image,
                                  std::string name, float divisor) {
  const ImageGrid grid = grid_of(context, image);
  std::vector<std::string> definitions = number_definitions(context, image.number());
  definitions.push_back(fmt::format("THREADS={}", grid.threads));
  definitions.push_back(fmt::format("LANES={}", grid.lanes));
  const PendingProgram program = context.program("ops/image_sums.cl", definitions);
  const bool is_cut = grid.parts > 1;
  const std::int64_t channels = image.channels(), results = image.images() * channels;
  std::vector<StagedKernel::AnyStage> stages{Stage{
      program,
      "image_sums",
      {blocks_of(input(0)), is_cut ? workspace() : output(0), as_uint(image.places()),
       as_uint(channels / ChannelsLast::kBlock), as_uint(grid.part), as_uint(grid.parts), is_cut ? 1.0F : divisor},
      {size(grid.columns * grid.threads), size(image.images() * grid.parts), 1},
      {size(grid.threads), 1, 1}}};
  if (is_cut) {
    Stage join{program,
               "image_sums_join",
               {workspace(), output(0), as_uint(results), as_uint(channels), as_uint(grid.parts), divisor}};
    blocking_of(context.limits(), results, 1).apply(join);
    stages.emplace_back(std::move(join));
  }
  const std::size_t bytes = is_cut ? size(results * grid.parts) * sizeof(float) : 0;
  return prepared_channels_last(request,
                                std::make_unique<StagedKernel>(context, std::move(name), std::move(stages), bytes),
                                std::array<std::size_t, 1>{0}, {});
}

}  // namespace concord::opencl
