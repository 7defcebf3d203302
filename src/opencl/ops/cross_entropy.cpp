// Cross-entropy with logits on OpenCL devices.
#include <fmt/format.h>

#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/formula/padded_tokens.hpp"
#include "concord/opencl/ops/lanes.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::opencl {
namespace {

/// Whether logits lie in 16 bits, class inside.
bool has_tokens(const KernelRequest& request) {
  const ChannelsLast* const tokens = as_channels_last(request.input_layouts[0]);
  return (tokens != nullptr && tokens->axis() == ChannelAxis::last) ||
         as_padded_tokens(request.input_layouts[0]) != nullptr;
}

PreparedKernel prepare_cross_entropy(Context& context, const ops::CrossEntropy& op, const KernelRequest& request) {
  const Shape& logits = request.inputs[0].shape;
  const Lanes lanes = lanes_for(context, logits[1], 1);
  std::vector<std::string> definitions = lanes.definitions();
  const bool is_in_tokens = has_tokens(request);
  if (is_in_tokens) {
    definitions.emplace_back("TOKENS");
    for (std::string& one : number_definitions(context, storage_number(request.precision))) {
      if (one != "CONCORD_SHORT_RESULTS") definitions.push_back(std::move(one));  // the loss is fp32
    }
  }
  if (request.inputs[1].dtype == DType::i32) definitions.emplace_back("CLASS_INDEX");
  Stage stage{context.program("ops/cross_entropy.cl", definitions),
              "cross_entropy_forward",
              {input(0, is_in_tokens ? 16 : 4), input(1), output(0), output(1), output(2),
               static_cast<std::uint64_t>(logits[0]), static_cast<std::uint64_t>(logits[1]), op.label_smoothing()}};
  lanes.cover(stage, logits[0]);
  PreparedKernel answer = prepared(
      request, std::make_unique<StagedKernel>(context, fmt::format("{}{}", op.name(), is_in_tokens ? " tokens" : ""),
                                              std::vector<StagedKernel::AnyStage>{std::move(stage)}));
  if (is_in_tokens) answer.input_layouts[0] = request.input_layouts[0];
  return answer;
}

}  // namespace

void add_cross_entropy(Kernels& kernels) { kernels.add<ops::CrossEntropy, prepare_cross_entropy>(); }

}  // namespace concord::opencl
