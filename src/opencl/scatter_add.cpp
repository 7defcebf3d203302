// Scatter-add of rows and along an axis: few indices are looked through by every element of the result, many are sorted
// on the device first.
#include <bit>

#include "concord/core/check.hpp"
#include "concord/opencl/kernels.hpp"
#include "concord/ops/axis.hpp"
#include "concord/ops/gather_along.hpp"

namespace concord::opencl {
namespace {

/// src (outer, length, inner, width) by indices (outer, length, inner) → dst (outer, rows, inner, width).
struct Scatter {
  std::int64_t outer, length, inner, width, rows, padding;
  [[nodiscard]] std::int64_t count() const { return outer * length * inner; }
  [[nodiscard]] std::int64_t lines() const { return outer * rows * inner; }
};

std::uint32_t narrow(std::int64_t value) { return static_cast<std::uint32_t>(value); }
std::uint64_t wide(std::int64_t value) { return static_cast<std::uint64_t>(value); }

/// One item an element, in groups of at most 64.
Stage elementwise(const Context& context, const boost::compute::program& program, const std::string& function,
                  std::int64_t elements, std::vector<Argument> arguments) {
  const std::size_t local = std::min<std::size_t>(64, context.limits().max_work_group);
  const std::size_t groups = (static_cast<std::size_t>(elements) + local - 1) / local;
  return {program, function, std::move(arguments), {groups * local, 1, 1}, {local, 1, 1}};
}

/// Sorts `padded` words of the workspace.
void add_sort(Context& context, std::int64_t padded, std::int64_t block, std::vector<StagedKernel::AnyStage>& stages) {
  const boost::compute::program program = context.program("sort.cl", {fmt::format("BLOCK={}", block)});
  const BufferArgument words = workspace(0, 8);
  const std::array<std::size_t, 3> global{static_cast<std::size_t>(padded / 2), 1, 1};
  const std::array<std::size_t, 3> local{static_cast<std::size_t>(block / 2), 1, 1};
  stages.emplace_back(Stage{program, "sort_blocks", {words}, global, local});
  for (std::int64_t size = 2 * block; size <= padded; size *= 2) {
    for (std::int64_t distance = size / 2; distance >= block; distance /= 2) {
      stages.emplace_back(Stage{program, "sort_step", {words, narrow(size), narrow(distance)}, global, local});
    }
    stages.emplace_back(Stage{program, "sort_merge", {words, narrow(size)}, global, local});
  }
}

PreparedKernel prepare(Context& context, const Scatter& s, const KernelRequest& request) {
  const std::int64_t elements = request.outputs[0].shape.elements();
  const auto padding = static_cast<std::int32_t>(s.padding);
  const boost::compute::program program = context.program("scatter_add.cl");
  std::vector<StagedKernel::AnyStage> stages;
  constexpr std::int64_t kFew = 128;
  if (s.length <= kFew) {
    stages.emplace_back(elementwise(context, program, "scatter_elements", elements,
                                    {input(0), input(1), output(0), wide(s.length), wide(s.inner), wide(s.rows),
                                     wide(s.width), padding, wide(elements)}));
    return prepared(request, std::make_unique<StagedKernel>(context, "scatter_add by element", std::move(stages)));
  }
  CONCORD_CHECK(s.count() <= std::int64_t{1} << 30 && s.lines() < std::int64_t{1} << 31, NotSupported,
                "{}: {} indices into {} rows exceed the 2^30 and 2^31 - 1 of the kernel", request.op->name(), s.count(),
                s.lines());
  const auto group =
      static_cast<std::int64_t>(std::bit_floor(std::min<std::size_t>(256, context.limits().max_work_group)));
  const std::int64_t block = 2 * group;
  const auto count = static_cast<std::uint64_t>(s.count());
  const auto padded = std::max(block, static_cast<std::int64_t>(std::bit_ceil(count)));
  const std::size_t words_bytes = static_cast<std::size_t>(padded) * sizeof(std::uint64_t);
  const std::size_t begins_bytes = static_cast<std::size_t>(s.lines() + 1) * sizeof(std::uint32_t);
  const BufferArgument words = workspace(0, 8), begins = workspace(words_bytes);
  stages.emplace_back(elementwise(context, program, "scatter_words", padded,
                                  {input(1), words, narrow(s.length), narrow(s.inner), narrow(s.rows), padding,
                                   narrow(s.count()), narrow(padded)}));
  add_sort(context, padded, block, stages);
  stages.emplace_back(elementwise(context, program, "scatter_begins", s.lines() + 1,
                                  {words, begins, narrow(padded), narrow(s.lines())}));
  stages.emplace_back(elementwise(context, program, "scatter_lines", elements,
                                  {input(0), words, begins, output(0), wide(s.width), wide(elements)}));
  return prepared(request, std::make_unique<StagedKernel>(context, "scatter_add by sorted indices", std::move(stages),
                                                          words_bytes + begins_bytes));
}

}  // namespace

PreparedKernel prepare_scatter_add(Context& context, const ops::ScatterAdd& op, const KernelRequest& request) {
  const std::int64_t width = request.outputs[0].shape.elements() / op.rows();
  return prepare(context, {1, request.inputs[1].shape.elements(), 1, width, op.rows(), op.padding()}, request);
}

PreparedKernel prepare_scatter_add_along(Context& context, const ops::ScatterAddAlong& op,
                                         const KernelRequest& request) {
  const ops::AxisSizes s = ops::axis_sizes(request.inputs[0].shape, op.axis());
  return prepare(context, {s.outer, s.length, s.inner, 1, op.size(), -1}, request);
}

}  // namespace concord::opencl
