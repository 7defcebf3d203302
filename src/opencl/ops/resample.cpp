// Resample on OpenCL devices: one kernel, which reads the maps of the axes from tables.
#include "concord/ops/resample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/launch/constant_table.hpp"
#include "concord/opencl/ops/element_kernel.hpp"

namespace concord::opencl {
namespace {

/// The table of a map on the device, as resample.cl reads it.
std::shared_ptr<const OpenClBuffer> table_of(Context& context, const ops::Taps& taps) {
  std::vector<std::int32_t> words = taps.begin;
  for (std::size_t t = 0; t < taps.place.size(); ++t) {
    words.push_back(taps.place[t]);
    words.push_back(std::bit_cast<std::int32_t>(taps.weight[t]));
  }
  return constant_table<std::int32_t>(context, words);
}

/// The least and the most taps of a row.
std::pair<std::int32_t, std::int32_t> counts_of(const ops::Taps& taps) {
  std::pair<std::int32_t, std::int32_t> counts{taps.begin[1] - taps.begin[0], 0};
  for (std::size_t row = 0; row + 1 < taps.begin.size(); ++row) {
    const std::int32_t count = taps.begin[row + 1] - taps.begin[row];
    counts = {std::min(counts.first, count), std::max(counts.second, count)};
  }
  return counts;
}

constexpr std::int32_t kNoPlace = -1;  // 0 times what is at a place may be NaN

/// The same matrix with an equal number of taps in every row; the added ones have no place. Compilers unroll loops of
/// fixed length. Unchanged where rows are empty or long.
ops::Taps evened(const ops::Taps& taps) {
  constexpr std::int32_t kMost = 8;
  const auto [least, most] = counts_of(taps);
  if (least == 0 || most > kMost) return taps;
  ops::Taps even{{0}, {}, {}};
  for (std::size_t row = 0; row + 1 < taps.begin.size(); ++row) {
    for (std::int32_t t = 0; t < most; ++t) {
      const auto tap = static_cast<std::size_t>(taps.begin[row] + t);
      const bool is_there = taps.begin[row] + t < taps.begin[row + 1];
      even.place.push_back(is_there ? taps.place[tap] : kNoPlace);
      even.weight.push_back(is_there ? taps.weight[tap] : 0);
    }
    even.begin.push_back(static_cast<std::int32_t>(even.place.size()));
  }
  return even;
}

PreparedKernel prepare_resample(Context& context, const ops::Resample& op, const KernelRequest& request) {
  const ops::ResampleSizes sizes = ops::resample_sizes(op, request.inputs[0].shape);
  ElementKernel kernel(context, request.outputs[0].shape.elements());
  kernel.add(input(0));
  kernel.add(output(0));
  const auto add_table = [&](const std::optional<ops::Taps>& taps, const char* definition) {
    if (!taps) return;
    const ops::Taps even = evened(*taps);
    const auto [least, most] = counts_of(even);
    kernel.define(fmt::format("{}={}", definition, least == most ? most : 0));
    kernel.add(table_of(context, even));
  };
  add_table(sizes.row_taps, "ROW_TAPS");
  add_table(sizes.column_taps, "COLUMN_TAPS");
  kernel.add_index(sizes.rows);
  kernel.add_index(sizes.columns);
  kernel.add_divisor(sizes.dst_rows);
  kernel.add_divisor(sizes.dst_columns);
  return kernel.prepare(request, "resample", "resample by taps");
}

}  // namespace

void add_resample(Kernels& kernels) { kernels.add<ops::Resample, prepare_resample>(); }

}  // namespace concord::opencl
