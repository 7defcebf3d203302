// Sums by channel of images in channels-last layout (cl_kernels/ops/reduce_channels_last.cl).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "concord/opencl/formula/channels_last_rows.hpp"
#include "concord/opencl/ops/channels_last.hpp"

namespace concord::opencl {

std::optional<PreparedKernel> prepare_reduce_channels_last(Context& context, const ops::Reduce& op,
                                                           const KernelRequest& request) {
  const ChannelsLast* image = first_channels_last(request);
  if (image == nullptr || op.kind() != ops::ReduceKind::sum) return {};
  const std::size_t rank = request.inputs[0].shape.rank();
  const std::vector<std::size_t>& axes = op.axes();
  // Over everything but the channels.
  const bool by_channel = axes.size() == rank - 1 && std::ranges::find(axes, std::size_t{1}) == axes.end();
  if (!by_channel) return {};
  const RowsGrid grid(context, *image, "ops/reduce_channels_last.cl");
  std::vector<StagedKernel::AnyStage> stages{grid.over_blocks("channel_sums", {blocks_of(input(0)), grid.sums()}),
                                             grid.over_channels("channel_sums_join", {grid.sums(), output(0)})};
  return prepared_channels_last(request,
                                std::make_unique<StagedKernel>(context, fmt::format("{} channels-last", op.name()),
                                                               std::move(stages), grid.workspace_bytes()),
                                std::array<std::size_t, 1>{0}, {});
}

}  // namespace concord::opencl
