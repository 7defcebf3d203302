// Batch normalisation with the statistics of the batch, and its gradient, on OpenCL devices.
#include <algorithm>
#include <bit>

#include "concord/core/check.hpp"
#include "concord/opencl/kernels.hpp"
#include "concord/opencl/strides.hpp"

namespace concord::opencl {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The cut of a batch (N, C, plane) into work-groups: every channel into parts of whole images.
struct Cut {
  std::int64_t images, channels, plane, part, parts;
  std::size_t threads;

  [[nodiscard]] std::vector<Argument> sizes() const {
    const FastDivisor divisor = fast_divisor(plane);
    return {static_cast<std::uint64_t>(images),
            static_cast<std::uint64_t>(channels),
            static_cast<std::uint64_t>(plane),
            divisor.multiplier,
            divisor.shift,
            static_cast<std::uint64_t>(part)};
  }
  [[nodiscard]] std::size_t sums_bytes() const {
    return static_cast<std::size_t>(channels * parts) * 2 * sizeof(float);
  }
};

Cut cut_of(const Context& context, const Shape& src) {
  Cut cut{src[0], src[1], 1, 1, 1, 1};
  for (std::size_t axis = 2; axis < src.rank(); ++axis) cut.plane *= src.dims()[axis];
  CONCORD_CHECK(cut.images * cut.plane < std::int64_t{1} << 31, NotSupported,
                "batch_norm of {}: more than 2^31 - 1 values a channel", src.str());
  const std::int64_t units = context.limits().compute_units, values = cut.images * cut.plane;
  if (!context.limits().is_cpu) {
    const std::size_t limit = std::bit_floor(std::min<std::size_t>(256, context.limits().max_work_group));
    cut.threads =
        std::min(limit, std::max<std::size_t>(32, std::bit_ceil(static_cast<std::size_t>(divide_up(values, 4)))));
  }
  // About two groups a compute unit, but a part is worth a thousand values.
  const std::int64_t wanted = std::min(divide_up(2 * units, cut.channels), divide_up(values, 1024));
  cut.part = divide_up(cut.images, std::clamp<std::int64_t>(wanted, 1, cut.images));
  cut.parts = divide_up(cut.images, cut.part);
  return cut;
}

PreparedKernel two_stages(Context& context, const KernelRequest& request, const Cut& cut, std::string_view name,
                          const std::string& first, std::vector<Argument> first_arguments, const std::string& second,
                          std::vector<Argument> second_arguments, float epsilon) {
  const PendingProgram program = context.program("batch_norm.cl", {fmt::format("THREADS={}", cut.threads)});
  const std::vector<Argument> sizes = cut.sizes();
  first_arguments.insert(first_arguments.end(), sizes.begin(), sizes.end());
  second_arguments.insert(second_arguments.end(), sizes.begin(), sizes.end());
  second_arguments.emplace_back(epsilon);
  const std::array<std::size_t, 3> global{static_cast<std::size_t>(cut.channels) * cut.threads,
                                          static_cast<std::size_t>(cut.parts), 1};
  std::vector<StagedKernel::AnyStage> stages{
      Stage{program, first, std::move(first_arguments), global, {cut.threads, 1, 1}},
      Stage{program, second, std::move(second_arguments), global, {cut.threads, 1, 1}}};
  return prepared(request,
                  std::make_unique<StagedKernel>(context, std::string(name), std::move(stages), cut.sums_bytes()));
}

}  // namespace

PreparedKernel prepare_batch_norm(Context& context, const ops::BatchNorm& op, const KernelRequest& request) {
  const Cut cut = cut_of(context, request.inputs[0].shape);
  return two_stages(context, request, cut, op.name(), "batch_norm_statistics", {input(0), workspace()},
                    "batch_norm_forward", {input(0), workspace(), input(1), input(2), output(0), output(1), output(2)},
                    op.epsilon());
}

PreparedKernel prepare_batch_norm_backward(Context& context, const ops::BatchNormBackward& op,
                                           const KernelRequest& request) {
  const Cut cut = cut_of(context, request.inputs[0].shape);
  return two_stages(context, request, cut, op.name(), "batch_norm_backward_sums",
                    {input(0), input(1), input(3), workspace()}, "batch_norm_backward",
                    {input(0), input(1), input(2), input(3), input(4), workspace(), output(0), output(1), output(2)},
                    op.epsilon());
}

}  // namespace concord::opencl
