// Cross-entropy with logits on OpenCL devices.
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/ops/lanes.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::opencl {
namespace {

PreparedKernel prepare_cross_entropy(Context& context, const ops::CrossEntropy& op, const KernelRequest& request) {
  const Shape& logits = request.inputs[0].shape;
  const Lanes lanes = lanes_for(context, logits[1], 1);
  std::vector<std::string> definitions = lanes.definitions();
  if (request.inputs[1].dtype == DType::i32) definitions.emplace_back("CLASS_INDEX");
  Stage stage{context.program("ops/cross_entropy.cl", definitions),
              "cross_entropy_forward",
              {input(0), input(1), output(0), output(1), output(2), static_cast<std::uint64_t>(logits[0]),
               static_cast<std::uint64_t>(logits[1]), op.label_smoothing()}};
  lanes.cover(stage, logits[0]);
  return prepared(request, std::make_unique<StagedKernel>(context, std::string(op.name()),
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

}  // namespace

void add_cross_entropy(Kernels& kernels) { kernels.add<ops::CrossEntropy, prepare_cross_entropy>(); }

}  // namespace concord::opencl
