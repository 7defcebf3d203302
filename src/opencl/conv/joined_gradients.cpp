// Launches that make the gradients of the weights of several convolutions.
#include "concord/opencl/conv/joined_gradients.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "concord/core/debug_options.hpp"
#include "concord/opencl/conv/channels_last.hpp"
#include "concord/opencl/conv/joined_check.hpp"
#include "concord/opencl/formula/joined_kernel.hpp"
#include "concord/opencl/gemm/arguments.hpp"
#include "concord/opencl/gemm/channels_last.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/one_memory.hpp"

namespace concord::opencl {
namespace {

ConvProblem problem_of(const ops::ConvBackwardWeights& op, const KernelRequest& request) {
  return {ConvPass::backward_weights, op.sizes(request.inputs), request, op.name()};
}

}  // namespace

std::optional<GroupKind> kind_of_weights_gradient(Context& context, const Operator& op,
                                                  std::span<const TensorSpec> inputs, Precision precision) {
  // Images that wait for the last of the gradients take memory.
  constexpr std::size_t kMostAwaited = std::size_t{128} << 20;
  const auto* const gradient = dynamic_cast<const ops::ConvBackwardWeights*>(&op);
  // Each member has memories of its own.
  if (gradient == nullptr || memory_definitions(context).empty()) return std::nullopt;
  if (debug_option("gemm") || debug_option("conv")) return std::nullopt;
  const KernelRequest request{
      &op, {inputs.begin(), inputs.end()}, std::vector<Layout>(inputs.size()), op.infer(inputs), precision};
  std::optional<Gemm> product = channels_last_weights_product(context, problem_of(*gradient, request));
  if (!product || fills_device(context, *product)) return std::nullopt;
  const bool is_right = context.remembered(fmt::format("gradients of weights together in {}", name_of(precision)),
                                           [&] { return gradients_are_right_together(context, precision); });
  if (!is_right) return std::nullopt;
  product->patch.inside = false;  // as in one launch with others
  return GroupKind{.name = fmt::format("{} {}", op.name(), fmt::join(gemm_definitions(*product), " ")),
                   .label = std::string(op.name()),
                   .awaited = kMostAwaited,
                   .most = kMostInOneLaunch};
}

std::optional<PreparedKernel> prepare_weights_gradients(Context& context, const ops::OperatorGroup& group,
                                                        const KernelRequest& request) {
  std::vector<Gemm> products;
  PreparedKernel result;
  const std::vector<KernelRequest> requests = requests_of(group, request);
  for (const KernelRequest& one : requests) {
    const auto* const gradient = dynamic_cast<const ops::ConvBackwardWeights*>(one.op);
    if (gradient == nullptr || memory_definitions(context).empty()) return std::nullopt;
    const ConvProblem problem = problem_of(*gradient, one);
    std::optional<Gemm> product = channels_last_weights_product(context, problem);
    if (!product) return std::nullopt;
    product->a.buffer.index += 2 * products.size();
    product->b.buffer.index += 2 * products.size();
    product->c.buffer.index = products.size();
    products.push_back(*std::move(product));
    const PreparedKernel alone = prepared_channels_last(problem, nullptr);
    result.input_layouts.insert(result.input_layouts.end(), alone.input_layouts.begin(), alone.input_layouts.end());
    result.output_layouts.insert(result.output_layouts.end(), alone.output_layouts.begin(), alone.output_layouts.end());
  }
  result.kernel = prepare_together(context, products, "gradients of weights");
  if (result.kernel == nullptr) return std::nullopt;
  context.alternatives().count(alternative::kChannelsLast);
  return result;
}

}  // namespace concord::opencl
