// Softmax and log-softmax with their gradient on OpenCL devices.
#include "concord/ops/softmax.hpp"

#include <algorithm>

#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/ops/lanes.hpp"

namespace concord::opencl {
namespace {

/// Whether the sizes fit the counters of the kernels for CPUs.
bool fits_runs(std::int64_t outer, std::int64_t length, std::int64_t inner) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  return outer * inner < kMost && length < kMost && length > 0;
}

/// The stage for CPUs (softmax_contiguous.cl): by rows where elements are adjacent, else by blocks of columns.
Stage runs_stage(Context& context, const std::vector<std::string>& definitions, const std::string& function,
                 std::vector<Argument> arguments, std::int64_t outer, std::int64_t length, std::int64_t inner) {
  constexpr std::int64_t kColumns = 64;
  const bool by_rows = inner == 1;
  Stage stage{context.program("ops/softmax_contiguous.cl", definitions), function + (by_rows ? "_rows" : "_columns"),
              std::move(arguments)};
  if (by_rows) {
    const std::int64_t rows = std::max<std::int64_t>(1, chunking_of(context.limits(), outer * length).chunk / length);
    for (const std::int64_t number : {outer, length, rows})
      stage.arguments.emplace_back(static_cast<std::uint32_t>(number));
    stage.global = {static_cast<std::size_t>((outer + rows - 1) / rows), 1, 1};
  } else {
    for (const std::int64_t number : {length, inner}) stage.arguments.emplace_back(static_cast<std::uint32_t>(number));
    stage.global = {static_cast<std::size_t>((inner + kColumns - 1) / kColumns), static_cast<std::size_t>(outer), 1};
  }
  stage.local = {1, 1, 1};
  return stage;
}

template <class Op>
PreparedKernel prepare_softmax(Context& context, const Op& op, const KernelRequest& request,
                               const std::string& function, std::vector<Argument> arguments) {
  const Shape& shape = request.outputs[0].shape;
  std::int64_t outer = 1, inner = 1;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (axis != op.axis()) (axis < op.axis() ? outer : inner) *= shape.dims()[axis];
  }
  const std::int64_t length = shape.dims()[op.axis()];
  std::vector<std::string> definitions;
  if (op.log()) definitions.emplace_back("LOG");
  Stage stage;
  if (context.limits().is_cpu && outer * inner > 0 && fits_runs(outer, length, inner)) {
    stage = runs_stage(context, definitions, function, std::move(arguments), outer, length, inner);
  } else {
    const Lanes lanes = lanes_for(context, length, inner);
    for (const std::string& definition : lanes.definitions()) definitions.push_back(definition);
    for (const std::int64_t size : {outer * inner, length, inner})
      arguments.emplace_back(static_cast<std::uint64_t>(size));
    stage = Stage{context.program("ops/softmax.cl", definitions), function, std::move(arguments)};
    lanes.cover(stage, length == 0 ? 0 : outer * inner);
  }
  return prepared(request, std::make_unique<StagedKernel>(context, std::string(op.name()),
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

PreparedKernel prepare_softmax(Context& context, const ops::Softmax& op, const KernelRequest& request) {
  return prepare_softmax(context, op, request, "softmax_forward", {input(0), output(0)});
}

PreparedKernel prepare_softmax_backward(Context& context, const ops::SoftmaxBackward& op,
                                        const KernelRequest& request) {
  return prepare_softmax(context, op, request, "softmax_backward", {input(0), input(1), output(0)});
}

}  // namespace

void add_softmax(Kernels& kernels) {
  kernels.add<ops::Softmax, prepare_softmax>();
  kernels.add<ops::SoftmaxBackward, prepare_softmax_backward>();
}

}  // namespace concord::opencl
