// Random kernels: one work-item for four neighbours of the stream.
#include "concord/ops/random.hpp"

#include <array>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/gemm/channels_last.hpp"
#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {
namespace {

/// Whether a mask of zeros and ones is to be stored as tokens in 16 bits: where large values of its shape are.
bool is_mask_of_tokens(Context& context, const ops::Random& op, const KernelRequest& request) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 20;
  const TensorSpec& mask = request.outputs[0];
  return op.distribution() == ops::Distribution::bernoulli && op.b() == 1.0F && mask.shape.rank() <= 3 &&
         mask.shape.elements() >= kLarge && storage_refusal(context, request.precision).empty() &&
         channels_last(mask, storage_number(request.precision), ChannelAxis::last) != nullptr &&
         tma_gemm().device_refusal(context, request.precision).empty();
}

PreparedKernel prepare_mask_of_tokens(Context& context, const ops::Random& op, const KernelRequest& request) {
  const auto blocks = request.outputs[0].shape.elements() / ChannelsLast::kBlock;
  Stage stage{context.program("ops/random.cl", number_definitions(context, storage_number(request.precision))),
              "random_mask_of_tokens",
              {input(0), blocks_of(output(0)), op.a(), op.purpose(), static_cast<std::uint32_t>(blocks)}};
  blocking_of(context.limits(), blocks, 1).apply(stage);
  return prepared_channels_last(request,
                                std::make_unique<StagedKernel>(context, "random mask tokens",
                                                               std::vector<StagedKernel::AnyStage>{std::move(stage)}),
                                {}, std::array<std::size_t, 1>{0}, ChannelAxis::last);
}

PreparedKernel prepare_attention_factors(Context& context, const ops::Random& op, const KernelRequest& request) {
  const Shape& shape = request.outputs.at(0).shape;
  Stage stage;
  stage.program = context.program("ops/random.cl");
  stage.function = op.name();
  stage.arguments = {input(0),
                     output(0),
                     static_cast<std::uint32_t>(op.a()),
                     op.b(),
                     op.purpose(),
                     static_cast<std::uint32_t>(shape[2]),
                     static_cast<std::uint32_t>(shape[3]),
                     static_cast<std::uint64_t>(shape.elements())};
  blocking_of(context.limits(), shape.elements(), 1).apply(stage);
  return prepared(request, std::make_unique<StagedKernel>(context, "random_attention philox",
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

PreparedKernel prepare_random(Context& context, const ops::Random& op, const KernelRequest& request) {
  if (op.distribution() == ops::Distribution::attention) return prepare_attention_factors(context, op, request);
  if (is_mask_of_tokens(context, op, request)) return prepare_mask_of_tokens(context, op, request);
  const auto n = static_cast<std::uint64_t>(request.outputs.at(0).shape.elements());
  const bool is_uniform = op.distribution() == ops::Distribution::uniform;
  Stage stage;
  stage.program = context.program("ops/random.cl");
  stage.function = op.name();
  stage.arguments = {input(0), output(0), op.a(), is_uniform ? op.b() - op.a() : op.b(), op.purpose(), n};
  blocking_of(context.limits(), static_cast<std::int64_t>((n + 3) / 4), 1).apply(stage);
  return prepared(request, std::make_unique<StagedKernel>(context, std::string(op.name()) + " philox",
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

}  // namespace

void add_random(Kernels& kernels) { kernels.add<ops::Random, prepare_random>(); }

}  // namespace concord::opencl
