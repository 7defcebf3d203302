// Top-k by partial sorting of the indices of a line; threads own lines.
#include "concord/ops/top_k.hpp"

#include <algorithm>
#include <numeric>

#include "concord/ops/axis.hpp"
#include "kernels.hpp"

namespace concord::cpu {
namespace {

/// Whether a comes before b, both from one line: NaN is larger than any number, equal values keep their order.
bool comes_first(const float* line, std::int64_t stride, bool largest, std::int32_t a, std::int32_t b) {
  const float x = line[a * stride], y = line[b * stride];
  const bool x_nan = x != x, y_nan = y != y;
  if (x_nan != y_nan) return x_nan == largest;
  if (x_nan || x == y) return a < b;
  return largest ? x > y : x < y;
}

PreparedKernel prepare_top_k(Backend& backend, const ops::TopK& op, const KernelRequest& request) {
  const ops::AxisSizes s = ops::axis_sizes(request.inputs[0].shape, op.axis());
  const std::int64_t k = op.k();
  const bool largest = op.largest();
  const auto loop = [=, threads = backend.threads](const Pointers& pointers) {
    const std::int64_t lines = s.outer * s.inner;
    parallel_parts(lines, threads, lines * s.length >= kParallelElements / 8,
                   [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
                     std::int32_t* order = pointers.workspace<std::int32_t>() + part * s.length;
                     for (std::int64_t number = begin; number < end; ++number) {
                       const std::int64_t outer = number / s.inner, in = number % s.inner;
                       const float* line = pointers.input<float>(0) + outer * s.length * s.inner + in;
                       std::iota(order, order + s.length, 0);
                       std::partial_sort(order, order + k, order + s.length, [&](std::int32_t a, std::int32_t b) {
                         return comes_first(line, s.inner, largest, a, b);
                       });
                       for (std::int64_t i = 0; i < k; ++i) {
                         const std::int64_t place = (outer * k + i) * s.inner + in;
                         pointers.output<float>(0)[place] = line[order[i] * s.inner];
                         pointers.output<std::int32_t>(1)[place] = order[i];
                       }
                     }
                   });
  };
  const auto workspace = static_cast<std::size_t>(backend.threads * s.length) * sizeof(std::int32_t);
  return all_plain(request, loop_kernel("top_k partial sort", workspace, loop));
}

}  // namespace

void add_top_k(Kernels& kernels) { kernels.add<ops::TopK, prepare_top_k>(); }

}  // namespace concord::cpu
