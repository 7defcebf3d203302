// Max unpooling and its gradient on OpenCL devices.
#include "concord/core/check.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/ops/pool.hpp"

namespace concord::opencl {
namespace {

/// PooledChannels of all images, with the pixels of the large and of the pooled one.
struct PooledChannels {
  std::size_t count, pixels, pooled;
  PooledChannels(const Shape& image, const Shape& indices)
      : count(static_cast<std::size_t>(image[0] * image[1])),
        pixels(static_cast<std::size_t>(image.elements()) / count),
        pooled(static_cast<std::size_t>(indices.elements()) / count) {
    CONCORD_CHECK(pixels < std::size_t{1} << 31 && pooled < std::size_t{1} << 31, NotSupported,
                  "max_unpool: {} has more than the 2^31 - 1 pixels a channel that indices can name", image.str());
  }
  [[nodiscard]] std::vector<Argument> with_sizes(std::vector<Argument> arguments) const {
    arguments.emplace_back(static_cast<std::uint32_t>(pooled));
    arguments.emplace_back(static_cast<std::uint32_t>(pixels));
    return arguments;
  }
};

PreparedKernel prepare_max_unpool(Context& context, const ops::MaxUnpool& op, const KernelRequest& request) {
  const PooledChannels c(request.outputs[0].shape, request.inputs[1].shape);
  const PendingProgram program = context.program("ops/pool_indexed.cl");
  std::vector<StagedKernel::AnyStage> stages{
      Stage{program, "pool_indexed_clear", {workspace()}, {c.count * c.pixels, 1, 1}, {0, 0, 0}},
      Stage{program, "pool_indexed_mark", c.with_sizes({input(1), workspace()}), {c.pooled, c.count, 1}, {0, 0, 0}},
      Stage{program,
            "pool_indexed_forward",
            c.with_sizes({input(0), workspace(), output(0)}),
            {c.pixels, c.count, 1},
            {0, 0, 0}}};
  return prepared(request, std::make_unique<StagedKernel>(context, std::string(op.name()), std::move(stages),
                                                          c.count * c.pixels * sizeof(std::int32_t)));
}

PreparedKernel prepare_max_unpool_backward(Context& context, const ops::MaxUnpoolBackward& op,
                                           const KernelRequest& request) {
  const PooledChannels c(request.inputs[0].shape, request.inputs[1].shape);
  std::vector<StagedKernel::AnyStage> stages{Stage{context.program("ops/pool_indexed.cl"),
                                                   "pool_indexed_backward",
                                                   c.with_sizes({input(0), input(1), output(0)}),
                                                   {c.pooled, c.count, 1},
                                                   {0, 0, 0}}};
  return prepared(request, std::make_unique<StagedKernel>(context, std::string(op.name()), std::move(stages)));
}

}  // namespace

void add_pool_indexed(Kernels& kernels) {
  kernels.add<ops::MaxUnpool, prepare_max_unpool>();
  kernels.add<ops::MaxUnpoolBackward, prepare_max_unpool_backward>();
}

}  // namespace concord::opencl
