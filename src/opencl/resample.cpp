// Resample on OpenCL devices: one kernel, which reads the maps of the axes from tables.
#include "concord/ops/resample.hpp"

#include <bit>

#include "concord/opencl/blocking.hpp"
#include "concord/opencl/kernels.hpp"
#include "concord/opencl/strides.hpp"

namespace concord::opencl {
namespace {

/// The table of a map on the device, as resample.cl reads it.
boost::compute::buffer table_of(Context& context, const ops::Taps& taps) {
  std::vector<std::int32_t> words = taps.begin;
  words.insert(words.end(), taps.place.begin(), taps.place.end());
  for (const float weight : taps.weight) words.push_back(std::bit_cast<std::int32_t>(weight));
  return {context.context(), words.size() * sizeof(std::int32_t),
          boost::compute::buffer::read_only | boost::compute::buffer::copy_host_ptr, words.data()};
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
    definitions.emplace_back(definition);
    arguments.emplace_back(table_of(context, *taps));
    arguments.emplace_back(static_cast<std::uint32_t>(taps->place.size()));
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
