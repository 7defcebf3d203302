// Pooling and its gradients on OpenCL devices: one kernel each.
#include "concord/core/check.hpp"
#include "concord/opencl/kernels.hpp"
#include "concord/opencl/strides.hpp"

namespace concord::opencl {
namespace {

/// The result of a kernel: dst, or src for a gradient.
enum class Item { dst, src };

PreparedKernel prepare(Context& context, std::string_view name, const KernelRequest& request,
                       const ops::PoolSizes& sizes, Item item, const std::string& function,
                       std::vector<Argument> arguments) {
  const ops::PoolOptions& o = sizes.options;
  std::vector<std::string> definitions{fmt::format("KERNEL_H={}", o.kernel[0]), fmt::format("KERNEL_W={}", o.kernel[1]),
                                       fmt::format("STRIDE_H={}", o.stride[0]),
                                       fmt::format("STRIDE_W={}", o.stride[1])};
  if (o.count_include_pad) definitions.emplace_back("COUNT_PADDING");
  const bool no_edges = o.padding[0] == 0 && o.padding[1] == 0 &&
                        (sizes.oh - 1) * o.stride[0] + o.kernel[0] <= sizes.h &&
                        (sizes.ow - 1) * o.stride[1] + o.kernel[1] <= sizes.w;
  if (no_edges) definitions.emplace_back("NO_EDGES");
  if (no_edges && o.stride == o.kernel) definitions.emplace_back("APART");
  const std::int64_t width = item == Item::dst ? sizes.ow : sizes.w, height = item == Item::dst ? sizes.oh : sizes.h;
  const std::int64_t rows = sizes.n * sizes.c * height;
  CONCORD_CHECK(rows * width < std::int64_t{1} << 31, NotSupported, "{}: {} elements exceed the 2^31 - 1 of the kernel",
                name, rows * width);
  arguments.emplace_back(static_cast<std::uint32_t>(rows * width));
  for (const std::int64_t value : {width, height}) {
    const FastDivisor divisor = fast_divisor(value);
    for (const std::uint32_t number : {divisor.divisor, divisor.multiplier, divisor.shift})
      arguments.emplace_back(number);
  }
  for (const std::int64_t value : {sizes.h, sizes.w, sizes.oh, sizes.ow, o.padding[0], o.padding[1]}) {
    arguments.emplace_back(static_cast<std::int32_t>(value));
  }
  Stage stage;
  stage.function = function;
  stage.arguments = std::move(arguments);
  if (context.limits().is_cpu) {
    definitions.emplace_back("WHOLE_ROWS");
    stage.global = {static_cast<std::size_t>(rows), 1, 1};
  } else {
    const std::size_t group = std::min<std::size_t>(128, context.limits().max_work_group);
    stage.global = {(static_cast<std::size_t>(rows * width) + group - 1) / group * group, 1, 1};
    stage.local = {group, 1, 1};
  }
  stage.program = context.program("pool.cl", definitions);
  return prepared(request, std::make_unique<StagedKernel>(context, std::string(name),
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

}  // namespace

PreparedKernel prepare_max_pool(Context& context, const ops::MaxPool& op, const KernelRequest& request) {
  return prepare(context, op.name(), request, ops::pool_sizes(request.inputs[0].shape, op.options()), Item::dst,
                 "pool_max_forward", {input(0), output(0), output(1)});
}

PreparedKernel prepare_max_pool_backward(Context& context, const ops::MaxPoolBackward& op,
                                         const KernelRequest& request) {
  return prepare(context, op.name(), request, ops::pool_sizes(op.src(), op.options()), Item::src, "pool_max_backward",
                 {input(0), input(1), output(0)});
}

PreparedKernel prepare_avg_pool(Context& context, const ops::AvgPool& op, const KernelRequest& request) {
  return prepare(context, op.name(), request, ops::pool_sizes(request.inputs[0].shape, op.options()), Item::dst,
                 "pool_average_forward", {input(0), output(0)});
}

PreparedKernel prepare_avg_pool_backward(Context& context, const ops::AvgPoolBackward& op,
                                         const KernelRequest& request) {
  return prepare(context, op.name(), request, ops::pool_sizes(op.src(), op.options()), Item::src,
                 "pool_average_backward", {input(0), output(0)});
}

}  // namespace concord::opencl
