// Gather along an axis on OpenCL devices: one kernel.
#include "concord/ops/gather_along.hpp"

#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/ops/element_kernel.hpp"
#include "concord/ops/axis.hpp"

namespace concord::opencl {
namespace {

PreparedKernel prepare_gather_along(Context& context, const ops::GatherAlong& op, const KernelRequest& request) {
  const TensorSpec& src = request.inputs[0];
  const ops::AxisSizes sizes = ops::axis_sizes(src.shape, op.axis());
  const std::size_t bytes = size_of(src.dtype);
  ElementKernel kernel(context, request.outputs[0].shape.elements());
  kernel.define(std::string("ELEMENT=") + (bytes == 4 ? "uint" : bytes == 2 ? "ushort" : "uchar"));
  kernel.define(std::string("OUTSIDE=") + (src.dtype == DType::f32 ? "0x7fc00000u" : "0"));
  kernel.add(input(0, bytes));
  kernel.add(input(1));
  kernel.add(output(0, bytes));
  kernel.add(static_cast<std::uint32_t>(sizes.length));
  kernel.add_divisor(sizes.inner);
  kernel.add_divisor(request.outputs[0].shape.dims()[op.axis()]);
  return kernel.prepare(request, "gather_along", "gather_along");
}

}  // namespace

void add_gather_along(Kernels& kernels) { kernels.add<ops::GatherAlong, prepare_gather_along>(); }

}  // namespace concord::opencl
