// Resample on OpenCL devices: one kernel, which reads the maps of the axes from tables.
#include "concord/ops/resample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "concord/opencl/blocking.hpp"
#include "concord/opencl/kernels.hpp"
#include "concord/opencl/strides.hpp"

namespace concord::opencl {
namespace {

/// The table of a map on the device, as resample.cl reads it.
boost::compute::buffer table_of(Context& context, const ops::Taps& taps) {
  std::vector<std::int32_t> words = taps.begin;
  for (std::size_t t = 0; t < taps.place.size(); ++t) {
    words.push_back(taps.place[t]);
    words.push_back(std::bit_cast<std::int32_t>(taps.weight[t]));
  }
  return {context.context(), words.size() * sizeof(std::int32_t),
          boost::compute::buffer::read_only | boost::compute::buffer::copy_host_ptr, words.data()};
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

/// The same matrix with as many taps in every row, of weight 0 at the places that the row has anyway: loops with a
/// fixed end are unrolled. Unchanged where rows are empty or long.
ops::Taps evened(const ops::Taps& taps) {
  constexpr std::int32_t kMost = 8;
  const auto [least, most] = counts_of(taps);
  if (least == 0 || most > kMost) return taps;
  ops::Taps even{{0}, {}, {}};
  for (std::size_t row = 0; row + 1 < taps.begin.size(); ++row) {
    for (std::int32_t t = 0; t < most; ++t) {
      const std::int32_t last = taps.begin[row + 1] - 1, from = taps.begin[row] + t;
      even.place.push_back(taps.place[static_cast<std::size_t>(std::min(from, last))]);
      even.weight.push_back(from <= last ? taps.weight[static_cast<std::size_t>(from)] : 0);
    }
    even.begin.push_back(static_cast<std::int32_t>(even.place.size()));
  }
  return even;
}

}  // namespace

PreparedKernel prepare_resample(Context& context, const ops::Resample& op, const KernelRequest& request) {
  const ops::ResampleSizes sizes = ops::resample_sizes(op, request.inputs[0].shape);
  const std::int64_t elements = request.outputs[0].shape.elements();
  const bool wide = is_wide_index(elements);
  const Blocking blocking = blocking_of(context.limits(), elements);
  std::vector<std::string> definitions{blocking.definition()};
  if (wide) definitions.emplace_back("WIDE_INDEX");
  std::vector<Argument> arguments{input(0), output(0)};
  const auto add_table = [&](const std::optional<ops::Taps>& taps, const char* definition) {
    if (!taps) return;
    const ops::Taps even = evened(*taps);
    const auto [least, most] = counts_of(even);
    definitions.push_back(fmt::format("{}={}", definition, least == most ? most : 0));
    arguments.emplace_back(table_of(context, even));
  };
  add_table(sizes.row_taps, "ROW_TAPS");
  add_table(sizes.column_taps, "COLUMN_TAPS");
  arguments.emplace_back(index_argument(sizes.rows, wide));
  arguments.emplace_back(index_argument(sizes.columns, wide));
  for (const std::int64_t size : {sizes.dst_rows, sizes.dst_columns}) {
    const FastDivisor divisor = wide ? FastDivisor{} : fast_divisor(size);
    arguments.emplace_back(index_argument(size, wide));
    arguments.emplace_back(divisor.multiplier);
    arguments.emplace_back(divisor.shift);
  }
  arguments.emplace_back(index_argument(elements, wide));
  Stage stage{context.program("resample.cl", definitions), "resample", std::move(arguments)};
  blocking.apply(stage);
  return prepared(request, std::make_unique<StagedKernel>(context, "resample by taps",
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

}  // namespace concord::opencl
