// Softmax and log-softmax with their gradient on OpenCL devices.
#include "concord/opencl/kernels.hpp"
#include "concord/opencl/lanes.hpp"

namespace concord::opencl {
namespace {

template <class Op>
PreparedKernel prepare(Context& context, const Op& op, const KernelRequest& request, const std::string& function,
                       std::vector<Argument> arguments) {
  const Shape& shape = request.outputs[0].shape;
  std::int64_t outer = 1, inner = 1;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (axis != op.axis()) (axis < op.axis() ? outer : inner) *= shape.dims()[axis];
  }
  const std::int64_t length = shape.dims()[op.axis()];
  const Lanes lanes = lanes_for(context, length, inner);
  std::vector<std::string> definitions = lanes.definitions();
  if (op.log()) definitions.emplace_back("LOG");
  for (const std::int64_t size : {outer * inner, length, inner})
    arguments.emplace_back(static_cast<std::uint64_t>(size));
  Stage stage{context.program("softmax.cl", definitions), function, std::move(arguments)};
  lanes.cover(stage, length == 0 ? 0 : outer * inner);
  return prepared(request, std::make_unique<StagedKernel>(context, std::string(op.name()),
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

}  // namespace

PreparedKernel prepare_softmax(Context& context, const ops::Softmax& op, const KernelRequest& request) {
  return prepare(context, op, request, "softmax_forward", {input(0), output(0)});
}

PreparedKernel prepare_softmax_backward(Context& context, const ops::SoftmaxBackward& op,
                                        const KernelRequest& request) {
  return prepare(context, op, request, "softmax_backward", {input(0), input(1), output(0)});
}

}  // namespace concord::opencl
