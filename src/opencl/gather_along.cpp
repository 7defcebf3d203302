// Gather along an axis on OpenCL devices: one kernel.
#include "concord/ops/gather_along.hpp"

#include "concord/core/check.hpp"
#include "concord/opencl/blocking.hpp"
#include "concord/opencl/kernels.hpp"
#include "concord/opencl/strides.hpp"
#include "concord/ops/axis.hpp"

namespace concord::opencl {

PreparedKernel prepare_gather_along(Context& context, const ops::GatherAlong& op, const KernelRequest& request) {
  const TensorSpec& src = request.inputs[0];
  const ops::AxisSizes sizes = ops::axis_sizes(src.shape, op.axis());
  const std::int64_t elements = request.outputs[0].shape.elements();
  const std::size_t bytes = size_of(src.dtype);
  const bool wide = is_wide_index(elements);
  const Blocking blocking = blocking_of(context.limits(), elements);
  std::vector<std::string> definitions{blocking.definition(),
                                       std::string("ELEMENT=") + (bytes == 4   ? "uint"
                                                                  : bytes == 2 ? "ushort"
                                                                               : "uchar"),
                                       std::string("OUTSIDE=") + (src.dtype == DType::f32 ? "0x7fc00000u" : "0")};
  if (wide) definitions.emplace_back("WIDE_INDEX");
  std::vector<Argument> arguments{input(0, bytes), input(1), output(0, bytes),
                                  static_cast<std::uint32_t>(sizes.length)};
  for (const std::int64_t size : {sizes.inner, request.outputs[0].shape.dims()[op.axis()]}) {
    const FastDivisor divisor = wide ? FastDivisor{} : fast_divisor(size);
    arguments.emplace_back(index_argument(size, wide));
    arguments.emplace_back(divisor.multiplier);
    arguments.emplace_back(divisor.shift);
  }
  arguments.emplace_back(index_argument(elements, wide));
  Stage stage{context.program("gather_along.cl", definitions), "gather_along", std::move(arguments)};
  blocking.apply(stage);
  return prepared(request, std::make_unique<StagedKernel>(context, "gather_along",
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

}  // namespace concord::opencl
