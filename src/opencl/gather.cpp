// Gather of rows.
#include <fmt/format.h>

#include "concord/opencl/blocking.hpp"
#include "concord/opencl/context.hpp"
#include "concord/opencl/kernels.hpp"
#include "concord/opencl/strides.hpp"

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

}  // namespace

PreparedKernel prepare_gather(Context& context, const ops::Gather& /*op*/, const KernelRequest& request) {
  const TensorSpec& table = request.inputs.at(0);
  const std::int64_t rows = table.shape[0];
  const std::size_t row_bytes = rows == 0 ? 0 : table.bytes() / static_cast<std::size_t>(rows);
  const Unit unit = unit_of(row_bytes);
  const auto width = static_cast<std::int64_t>(row_bytes / unit.bytes);
  const std::int64_t elements = request.inputs.at(1).shape.elements() * width;
  const bool wide = is_wide_index(elements);
  const FastDivisor divisor = wide ? FastDivisor{} : fast_divisor(width);
  const Blocking blocking = blocking_of(context.limits(), elements);
  std::vector<std::string> definitions{blocking.definition(), "ELEMENT=" + unit.type,
                                       "OUTSIDE=" + (table.dtype == DType::f32 ? unit.nan : "0")};
  if (wide) definitions.emplace_back("WIDE_INDEX");
  Stage stage;
  stage.program = context.program("gather.cl", definitions);
  stage.function = "gather";
  stage.arguments = {input(0, unit.bytes),
                     input(1),
                     output(0, unit.bytes),
                     index_argument(width, wide),
                     divisor.multiplier,
                     divisor.shift,
                     static_cast<std::uint32_t>(rows),
                     index_argument(elements, wide)};
  blocking.apply(stage);
  return prepared(request, std::make_unique<StagedKernel>(context, "gather " + unit.type,
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

}  // namespace concord::opencl
