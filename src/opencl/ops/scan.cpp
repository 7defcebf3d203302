// Cumulative sums on OpenCL devices: one kernel.
#include "concord/ops/scan.hpp"

#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/ops/lanes.hpp"
#include "concord/ops/axis.hpp"

namespace concord::opencl {
namespace {

PreparedKernel prepare_cumsum(Context& context, const ops::CumSum& op, const KernelRequest& request) {
  const ops::AxisSizes sizes = ops::axis_sizes(request.inputs[0].shape, op.axis());
  const Lanes lanes = lanes_for(context, sizes.length, sizes.inner);
  std::vector<std::string> definitions = lanes.definitions();
  if (op.exclusive()) definitions.emplace_back("EXCLUSIVE");
  if (op.reverse()) definitions.emplace_back("REVERSE");
  const std::int64_t rows = sizes.outer * sizes.inner;
  Stage stage{context.program("ops/scan.cl", definitions),
              "scan_sum",
              {input(0), output(0), static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(sizes.length),
               static_cast<std::uint64_t>(sizes.inner)}};
  lanes.cover(stage, sizes.length == 0 ? 0 : rows);
  return prepared(request, std::make_unique<StagedKernel>(context, "cumsum rows",
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

}  // namespace

void add_scan(Kernels& kernels) { kernels.add<ops::CumSum, prepare_cumsum>(); }

}  // namespace concord::opencl
