// Resample: for each row of the result the rows of the source first, then its columns; threads own rows.
#include "concord/ops/resample.hpp"

#include "kernels.hpp"
#include "resample_rows.hpp"

namespace concord::cpu {
namespace {

/// Row number `line` of the result; `between` holds one row of the source.
void run_line(const ops::ResampleSizes& s, const float* src, float* dst, float* between, std::int64_t line) {
  const std::int64_t row = line % s.dst_rows;
  src += line / s.dst_rows * s.rows * s.columns;
  dst += line * s.dst_columns;
  if (s.row_taps) {
    const std::int32_t begin = s.row_taps->begin[static_cast<std::size_t>(row)];
    const std::int32_t end = s.row_taps->begin[static_cast<std::size_t>(row) + 1];
    float* to = s.column_taps ? between : dst;
    resample_row(src, s.columns, s.row_taps->place.data() + begin, s.row_taps->weight.data() + begin, end - begin, to);
    src = to;
  }
  if (s.column_taps) {
    const ops::Taps& taps = *s.column_taps;
    resample_columns(src, taps.begin.data(), taps.place.data(), taps.weight.data(), s.dst_columns, dst);
  }
}

PreparedKernel prepare_resample(Backend& backend, const ops::Resample& op, const KernelRequest& request) {
  const auto sizes = std::make_shared<const ops::ResampleSizes>(ops::resample_sizes(op, request.inputs[0].shape));
  const bool both = sizes->row_taps && sizes->column_taps;
  const auto workspace = both ? static_cast<std::size_t>(backend.threads * sizes->columns) * sizeof(float) : 0;
  const std::int64_t elements = request.outputs[0].shape.elements();
  const auto loop = [sizes, elements, threads = backend.threads](const Pointers& pointers) {
    parallel_parts(sizes->outer * sizes->dst_rows, threads, elements >= kParallelElements,
                   [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
                     float* between = pointers.workspace<float>() + part * sizes->columns;
                     for (std::int64_t line = begin; line < end; ++line) {
                       run_line(*sizes, pointers.input<float>(0), pointers.output<float>(0), between, line);
                     }
                   });
  };
  return all_plain(request, loop_kernel("resample rows", workspace, loop));
}

}  // namespace

void add_resample(Kernels& kernels) { kernels.add<ops::Resample, prepare_resample>(); }

}  // namespace concord::cpu
