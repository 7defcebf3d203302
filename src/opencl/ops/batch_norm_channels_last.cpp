// Batch normalisation of images in channels-last layout (cl_kernels/ops/batch_norm_channels_last.cl).
#include <fmt/format.h>

#include "concord/opencl/formula/channels_last_rows.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/ops/batch_norm_resident.hpp"
#include "concord/opencl/ops/channels_last.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

/// As many as registers let run at once: each has more turns, and reads ahead in all but one.
constexpr std::int64_t kGroupsOfUnit = 2;

PreparedKernel finish(const KernelRequest& request, std::unique_ptr<Kernel> kernel) {
  return prepared_channels_last(request, std::move(kernel), like_result(request, request.inputs),
                                like_result(request, request.outputs));
}

std::unique_ptr<Kernel> in_launches(Context& context, const RowsGrid& grid, std::string_view name,
                                    std::vector<StagedKernel::AnyStage> stages) {
  return std::make_unique<StagedKernel>(context, fmt::format("{} channels-last", name), std::move(stages),
                                        grid.workspace_bytes());
}

PreparedKernel forward(Context& context, const ops::BatchNorm& op, const KernelRequest& request,
                       const EpilogueText& epilogue) {
  const ChannelsLast& image = *as_images(request.input_layouts[0]);
  if (auto kernel =
          resident_batch_norm(context, image,
                              {std::string(op.name()),
                               "batch_norm_resident",
                               1,
                               {blocks_of(input(0)), input(1), input(2), blocks_of(output(0)), output(1), output(2)},
                               op.epsilon()},
                              epilogue)) {
    return finish(request, std::move(kernel));
  }
  const RowsGrid grid(context, image, "ops/batch_norm_channels_last.cl", 4, kGroupsOfUnit);
  return finish(
      request,
      in_launches(
          context, grid, op.name(),
          {grid.over_blocks("batch_norm_statistics", {blocks_of(input(0)), grid.sums()}, {}, {}, {op.epsilon()}),
           grid.over_channels("batch_norm_join",
                              {grid.sums(), input(1), input(2), output(1), output(2), grid.factors()}, {op.epsilon()}),
           grid.over_blocks("batch_norm_forward", {blocks_of(input(0)), grid.factors(), blocks_of(output(0))},
                            epilogue)}));
}

PreparedKernel backward(Context& context, const ops::BatchNormBackward& op, const KernelRequest& request,
                        const EpilogueText& epilogue) {
  const ChannelsLast& image = *as_images(request.input_layouts[0]);
  if (auto kernel = resident_batch_norm(context, image,
                                        {std::string(op.name()),
                                         "batch_norm_resident_backward",
                                         2,
                                         {blocks_of(input(0)), blocks_of(input(1)), input(2), input(3), input(4),
                                          blocks_of(output(0)), output(1), output(2)},
                                         op.epsilon()},
                                        epilogue)) {
    return finish(request, std::move(kernel));
  }
  const RowsGrid grid(context, image, "ops/batch_norm_channels_last.cl", 8, kGroupsOfUnit);
  return finish(
      request,
      in_launches(context, grid, op.name(),
                  {grid.over_blocks("batch_norm_backward_sums",
                                    {blocks_of(input(0)), blocks_of(input(1)), input(3), input(4), grid.sums()}, {}, {},
                                    {op.epsilon()}),
                   grid.over_channels("batch_norm_join_backward",
                                      {grid.sums(), input(2), input(3), input(4), output(1), output(2), grid.factors()},
                                      {op.epsilon()}),
                   grid.over_blocks("batch_norm_backward",
                                    {blocks_of(input(0)), blocks_of(input(1)), grid.factors(), blocks_of(output(0))},
                                    epilogue)}));
}

}  // namespace

std::optional<PreparedKernel> prepare_batch_norm_channels_last(Context& context, const ops::BatchNorm& op,
                                                               const KernelRequest& request) {
  if (as_images(request.input_layouts[0]) == nullptr) return {};
  return forward(context, op, request, {});
}

std::optional<PreparedKernel> prepare_batch_norm_channels_last(Context& context, const ops::BatchNorm& op,
                                                               const KernelRequest& request, const Epilogue& epilogue) {
  if (as_images(request.input_layouts[0]) == nullptr) return {};
  const std::optional<EpilogueText> text = block_epilogue(request, epilogue);
  if (!text) return {};
  return forward(context, op, request, *text);
}

std::optional<PreparedKernel> prepare_batch_norm_backward_channels_last(Context& context,
                                                                        const ops::BatchNormBackward& op,
                                                                        const KernelRequest& request) {
  if (as_images(request.input_layouts[0]) == nullptr) return {};
  return backward(context, op, request, {});
}

std::optional<PreparedKernel> prepare_batch_norm_backward_channels_last(Context& context,
                                                                        const ops::BatchNormBackward& op,
                                                                        const KernelRequest& request,
                                                                        const Epilogue& epilogue) {
  if (as_images(request.input_layouts[0]) == nullptr) return {};
  const std::optional<EpilogueText> text = block_epilogue(request, epilogue);
  if (!text) return {};
  return backward(context, op, request, *text);
}

}  // namespace concord::opencl
