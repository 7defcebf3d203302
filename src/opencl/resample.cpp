// Resample on OpenCL devices: one kernel, which reads the maps of the axes from tables.
#include "concord/ops/resample.hpp"

#include <fmt/format.h>

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

/// The taps of each row; 0 where they differ, or are so many that unrolled loops would not pay.
std::int32_t uniform_taps(const ops::Taps& taps) {
  constexpr std::int32_t kMost = 16;
  const std::int32_t count = taps.begin[1] - taps.begin[0];
  for (std::size_t row = 1; row + 1 < taps.begin.size(); ++row) {
    if (taps.begin[row + 1] - taps.begin[row] != count) return 0;
  }
  return count <= kMost ? count : 0;
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
    definitions.push_back(fmt::format("{}={}", definition, uniform_taps(*taps)));
    arguments.emplace_back(table_of(context, *taps));
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
