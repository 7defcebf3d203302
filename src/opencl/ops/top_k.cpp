// Top-k on OpenCL devices: one kernel.
#include "concord/ops/top_k.hpp"

#include "concord/core/check.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/ops/lanes.hpp"
#include "concord/ops/axis.hpp"

namespace concord::opencl {
namespace {

PreparedKernel prepare_top_k(Context& context, const ops::TopK& op, const KernelRequest& request) {
  const ops::AxisSizes sizes = ops::axis_sizes(request.inputs[0].shape, op.axis());
  CONCORD_CHECK(sizes.length < std::int64_t{1} << 31, NotSupported, "top_k over an axis of {} elements", sizes.length);
  const Lanes lanes = lanes_for(context, sizes.length, sizes.inner);
  std::vector<std::string> definitions = lanes.definitions();
  if (op.largest()) definitions.emplace_back("LARGEST");
  const std::int64_t rows = sizes.outer * sizes.inner;
  std::vector<Argument> arguments{input(0), output(0), output(1)};
  for (const std::int64_t size : {rows, sizes.length, sizes.inner, op.k()}) {
    arguments.emplace_back(static_cast<std::uint64_t>(size));
  }
  Stage stage{context.program("ops/top_k.cl", definitions), "top_k", std::move(arguments)};
  lanes.cover(stage, rows);
  return prepared(request, std::make_unique<StagedKernel>(context, "top_k by rounds",
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

}  // namespace

void add_top_k(Kernels& kernels) { kernels.add<ops::TopK, prepare_top_k>(); }

}  // namespace concord::opencl
