// Gather of rows, and scatter-add in the order of the indices.
#include "concord/ops/gather.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "concord/ops/axis.hpp"
#include "kernels.hpp"

namespace concord::cpu {
namespace {

struct GatheredRows {
  std::int64_t rows;   // of the table
  std::int64_t count;  // indices
  std::int64_t row;    // elements of one row
  DType type;
  int threads;
  std::int64_t padding = -1;  // a row that nothing is added to
};

void gather_row(const GatheredRows& s, const Pointers& pointers, std::int64_t i) {
  const std::size_t bytes = static_cast<std::size_t>(s.row) * size_of(s.type);
  std::byte* dst = pointers.output<std::byte>(0) + static_cast<std::size_t>(i) * bytes;
  const std::int64_t index = pointers.input<std::int32_t>(1)[i];
  if (index >= 0 && index < s.rows) {
    std::memcpy(dst, pointers.input<std::byte>(0) + static_cast<std::size_t>(index) * bytes, bytes);
  } else if (s.type == DType::f32) {
    std::fill_n(reinterpret_cast<float*>(dst), s.row, std::numeric_limits<float>::quiet_NaN());
  } else {
    std::memset(dst, 0, bytes);
  }
}

// Columns [begin, end) of every row: threads own columns, so each sum runs over the indices in order.
void scatter_columns(const GatheredRows& s, const Pointers& pointers, std::int64_t begin, std::int64_t end) {
  const float* src = pointers.input<float>(0);
  const std::int32_t* indices = pointers.input<std::int32_t>(1);
  float* dst = pointers.output<float>(0);
  for (std::int64_t r = 0; r < s.rows; ++r) std::fill(dst + r * s.row + begin, dst + r * s.row + end, 0.0F);
  for (std::int64_t i = 0; i < s.count; ++i) {
    if (indices[i] < 0 || indices[i] >= s.rows || indices[i] == s.padding) continue;
    float* to = dst + indices[i] * s.row;
    const float* from = src + i * s.row;
    for (std::int64_t c = begin; c < end; ++c) to[c] += from[c];
  }
}

PreparedKernel prepare_gather(Backend& backend, const ops::Gather&, const KernelRequest& request) {
  const Shape& table = request.inputs[0].shape;
  const GatheredRows s{.rows = table[0],
                       .count = request.inputs[1].shape.elements(),
                       .row = ops::with_size(table, 0, 1).elements(),
                       .type = request.inputs[0].dtype,
                       .threads = backend.threads};
  return all_plain(request, loop_kernel("gather rows", 0, [s](const Pointers& pointers) {
                     parallel_for(s.count, s.threads, s.count * s.row >= kParallelElements,
                                  [&](std::int64_t i) { gather_row(s, pointers, i); });
                   }));
}

PreparedKernel prepare_scatter_add(Backend& backend, const ops::ScatterAdd& op, const KernelRequest& request) {
  const std::int64_t count = request.inputs[1].shape.elements();
  const GatheredRows s{.rows = op.rows(),
                       .count = count,
                       .row = request.outputs[0].shape.elements() / op.rows(),
                       .type = DType::f32,
                       .threads = backend.threads,
                       .padding = op.padding()};
  return all_plain(request, loop_kernel("scatter_add columns", 0, [s](const Pointers& pointers) {
                     parallel_parts(s.row, s.threads, (s.count + s.rows) * s.row >= kParallelElements,
                                    [&](std::int64_t, std::int64_t begin, std::int64_t end) {
                                      scatter_columns(s, pointers, begin, end);
                                    });
                   }));
}

}  // namespace

void add_gather(Kernels& kernels) {
  kernels.add<ops::Gather, prepare_gather>();
  kernels.add<ops::ScatterAdd, prepare_scatter_add>();
}

}  // namespace concord::cpu
