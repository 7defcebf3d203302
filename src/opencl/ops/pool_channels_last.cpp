// Pooling of images in channels-last layout, and its gradients (cl_kernels/ops/pool_channels_last.cl). A global average
// is a sum over places.
#include <fmt/format.h>

#include <array>

#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/ops/channels_last.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

std::optional<PreparedKernel> prepare(Context& context, std::string_view name, const KernelRequest& request,
                                      const ops::PoolSizes& sizes, std::string function,
                                      std::vector<Argument> arguments, const Epilogue* epilogue = nullptr) {
  const ops::PoolOptions& o = sizes.options;
  if (first_channels_last(request) == nullptr || sizes.src[0] != 1 || sizes.dst[0] != 1 || o.kernel[0] != 1) return {};
  const DType number = storage_number(request.precision);
  const Layout result = channels_last(request.outputs[0], number);
  if (!result || !channels_last(request.inputs[0], number)) return {};
  std::optional<EpilogueText> text = EpilogueText{};
  if (epilogue != nullptr) text = block_epilogue(request, *epilogue);
  if (!text) return {};

  std::vector<std::string> definitions = number_definitions(context, number);
  for (std::string& definition : pool_definitions(sizes)) definitions.push_back(std::move(definition));
  const std::int64_t blocks = as_channels_last(result)->blocks();
  arguments.emplace_back(static_cast<std::uint32_t>(blocks));
  arguments.emplace_back(static_cast<std::uint32_t>(sizes.c / ChannelsLast::kBlock));
  for (const std::int64_t value :
       {sizes.src[1], sizes.src[2], sizes.dst[1], sizes.dst[2], o.padding[1], o.padding[2]}) {
    arguments.emplace_back(static_cast<std::int32_t>(value));
  }
  std::vector<Argument> all{PackedArguments{std::move(arguments)}};
  all.insert(all.end(), text->arguments.begin(), text->arguments.end());
  Stage stage{context.program_from(text->text + kernel_source("ops/pool_channels_last.cl"), definitions),
              std::move(function), std::move(all)};
  blocking_of(context.limits(), blocks, 1).apply(stage);
  auto kernel = std::make_unique<StagedKernel>(context, fmt::format("{} channels-last", name),
                                               std::vector<StagedKernel::AnyStage>{std::move(stage)});
  // Images and indices, all of them, and operands of the epilogue of the result's shape.
  constexpr std::array<std::size_t, 2> kAll{0, 1};
  std::vector<std::size_t> images = like_result(request, request.inputs);
  const std::size_t first_extra = epilogue == nullptr ? request.inputs.size() : epilogue->first_extra;
  std::erase_if(images, [&](std::size_t i) { return i < first_extra; });
  images.insert(images.end(), kAll.begin(), kAll.begin() + first_extra);
  return prepared_channels_last(request, std::move(kernel), images, std::span(kAll).first(request.outputs.size()));
}

}  // namespace

std::optional<PreparedKernel> prepare_max_pool_channels_last(Context& context, const ops::MaxPool& op,
                                                             const KernelRequest& request) {
  if (op.options().is_adaptive()) return {};
  BufferArgument indices = output(1, 16);
  return prepare(context, op.name(), request, ops::pool_sizes(request.inputs[0].shape, op.options()),
                 "pool_max_forward", {blocks_of(input(0)), blocks_of(output(0)), indices});
}

std::optional<PreparedKernel> prepare_max_pool_backward_channels_last(Context& context, const ops::MaxPoolBackward& op,
                                                                      const KernelRequest& request,
                                                                      const Epilogue* epilogue) {
  if (op.options().is_adaptive()) return {};
  return prepare(context, op.name(), request, ops::pool_sizes(op.src(), op.options()), "pool_max_backward",
                 {blocks_of(input(0)), input(1, 16), blocks_of(output(0))}, epilogue);
}

std::optional<PreparedKernel> prepare_avg_pool_channels_last(Context& context, const ops::AvgPool& op,
                                                             const KernelRequest& request) {
  const ops::PoolSizes sizes = ops::pool_sizes(request.inputs[0].shape, op.options());
  const ChannelsLast* const image = as_images(request.input_layouts[0]);
  if (image != nullptr && sizes.is_global()) {
    return prepare_image_sums(context, request, *image, fmt::format("{} global channels-last", op.name()),
                              static_cast<float>(sizes.global_divisor()));
  }
  return prepare(context, op.name(), request, sizes, "pool_average_forward",
                 {blocks_of(input(0)), blocks_of(output(0))});
}

std::optional<PreparedKernel> prepare_avg_pool_backward_channels_last(Context& context, const ops::AvgPoolBackward& op,
                                                                      const KernelRequest& request,
                                                                      const Epilogue* epilogue) {
  return prepare(context, op.name(), request, ops::pool_sizes(op.src(), op.options()), "pool_average_backward",
                 {blocks_of(input(0)), blocks_of(output(0))}, epilogue);
}

}  // namespace concord::opencl
