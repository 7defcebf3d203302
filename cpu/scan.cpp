// Cumulative sums in double, a line at a time; threads own lines.
#include "concord/ops/scan.hpp"

#include "concord/ops/axis.hpp"
#include "kernels.hpp"

namespace concord::cpu {
namespace {

PreparedKernel prepare_cumsum(Backend& backend, const ops::CumSum& op, const KernelRequest& request) {
  const ops::AxisSizes s = ops::axis_sizes(request.inputs[0].shape, op.axis());
  const bool exclusive = op.exclusive(), reverse = op.reverse();
  const auto loop = [=, threads = backend.threads](const Pointers& pointers) {
    const std::int64_t lines = s.outer * s.inner;
    parallel_for(lines, threads, lines * s.length >= kParallelElements, [&](std::int64_t line) {
      const std::int64_t first = line / s.inner * s.length * s.inner + line % s.inner;
      double sum = 0;
      for (std::int64_t i = 0; i < s.length; ++i) {
        const std::int64_t place = first + (reverse ? s.length - 1 - i : i) * s.inner;
        const auto value = static_cast<double>(pointers.input<float>(0)[place]);
        pointers.output<float>(0)[place] = static_cast<float>(exclusive ? sum : sum + value);
        sum += value;
      }
    });
  };
  return all_plain(request, loop_kernel("cumsum lines", 0, loop));
}

}  // namespace

void add_scan(Kernels& kernels) { kernels.add<ops::CumSum, prepare_cumsum>(); }

}  // namespace concord::cpu
