// Gather of rows.
#include "concord/ops/gather.hpp"

#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/ops/element_kernel.hpp"
#include "concord/ops/axis.hpp"

namespace concord::opencl {
namespace {

/// The unit in which rows are moved.
struct Unit {
  std::size_t bytes;
  std::string type;
  std::string nan;  // of floats
};

Unit unit_of(std::size_t row_bytes) {
  if (row_bytes % 16 == 0) return {16, "uint4", "0x7fc00000u"};
  if (row_bytes % 4 == 0) return {4, "uint", "0x7fc00000u"};
  return {1, "uchar", "0"};
}

PreparedKernel prepare_gather(Context& context, const ops::Gather& /*op*/, const KernelRequest& request) {
  const TensorSpec& table = request.inputs.at(0);
  const std::int64_t rows = table.shape[0];
  const std::size_t row_bytes = size_of(table.dtype) * size(ops::with_size(table.shape, 0, 1).elements());
  const Unit unit = unit_of(row_bytes);
  const auto width = static_cast<std::int64_t>(row_bytes / unit.bytes);
  ElementKernel kernel(context, request.inputs.at(1).shape.elements() * width);
  kernel.define("ELEMENT=" + unit.type);
  kernel.define("OUTSIDE=" + (table.dtype == DType::f32 ? unit.nan : "0"));
  kernel.add(input(0, unit.bytes));
  kernel.add(input(1));
  kernel.add(output(0, unit.bytes));
  kernel.add_divisor(width);
  kernel.add(static_cast<std::uint32_t>(rows));
  return kernel.prepare(request, "gather", "gather " + unit.type);
}

}  // namespace

void add_gather(Kernels& kernels) { kernels.add<ops::Gather, prepare_gather>(); }

}  // namespace concord::opencl
