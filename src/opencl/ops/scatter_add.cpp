// Scatter-add of rows and along an axis. With few indices, every element of the result scans all of them; many indices
// are sorted on the device first.
#include <bit>

#include "concord/core/check.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/ops/axis.hpp"
#include "concord/ops/gather.hpp"
#include "concord/ops/gather_along.hpp"

namespace concord::opencl {
namespace {

/// src (outer, length, inner, width) by indices (outer, length, inner) → dst (outer, rows, inner, width).
struct Scatter {
  std::int64_t outer, length, inner, width, rows, padding;
  bool has_base = false;  // input 2 is added to the sums
  [[nodiscard]] std::int64_t count() const { return outer * length * inner; }
  [[nodiscard]] std::int64_t lines() const { return outer * rows * inner; }
};

/// An item a (column, line), in groups of at most 128 that are as wide as a line has columns.
Stage by_line(const Context& context, const PendingProgram& program, const std::string& function, std::int64_t columns,
              std::int64_t lines, std::vector<Argument> arguments) {
  const std::size_t group = std::bit_floor(std::min<std::size_t>(128, context.limits().max_work_group));
  const std::size_t wide = std::min(group, std::bit_ceil(static_cast<std::size_t>(columns))), high = group / wide;
  const auto covered = [](std::int64_t count, std::size_t part) {
    return (static_cast<std::size_t>(count) + part - 1) / part * part;
  };
  return {program, function, std::move(arguments), {covered(columns, wide), covered(lines, high), 1}, {wide, high, 1}};
}

/// Sorts `padded` words of the workspace.
void add_sort(Context& context, std::int64_t padded, std::int64_t block, std::vector<StagedKernel::AnyStage>& stages) {
  const PendingProgram program = context.program("ops/sort.cl", {fmt::format("BLOCK={}", block)});
  const BufferArgument words = workspace(0, 8);
  const std::array<std::size_t, 3> global{static_cast<std::size_t>(padded / 2), 1, 1};
  const std::array<std::size_t, 3> local{static_cast<std::size_t>(block / 2), 1, 1};
  stages.emplace_back(Stage{program, "sort_blocks", {words}, global, local});
  for (std::int64_t size = 2 * block; size <= padded; size *= 2) {
    for (std::int64_t distance = size / 2; distance >= block; distance /= 2) {
      stages.emplace_back(Stage{program, "sort_step", {words, as_uint(size), as_uint(distance)}, global, local});
    }
    stages.emplace_back(Stage{program, "sort_merge", {words, as_uint(size)}, global, local});
  }
}

PreparedKernel prepare(Context& context, const Scatter& s, const KernelRequest& request) {
  CONCORD_CHECK(s.count() <= std::int64_t{1} << 30 && s.lines() < std::int64_t{1} << 31, NotSupported,
                "{}: {} indices into {} rows exceed the 2^30 and 2^31 - 1 of the kernel", request.op->name(), s.count(),
                s.lines());
  const auto padding = static_cast<std::int32_t>(s.padding);
  // More columns an item where a line has enough of them: an item without words has little to do.
  const std::int64_t columns = s.width >= 512 ? 4 : 1;
  std::vector<std::string> definitions{fmt::format("COLUMNS={}", columns)};
  std::vector<Argument> base;
  if (s.has_base) {
    definitions.emplace_back("HAS_BASE");
    base.emplace_back(input(ops::ScatterAdd::kBase));
  }
  const auto with_base = [&base](std::vector<Argument> arguments) {
    arguments.insert(arguments.end(), base.begin(), base.end());
    return arguments;
  };
  const PendingProgram program = context.program("ops/scatter_add.cl", definitions);
  std::vector<StagedKernel::AnyStage> stages;
  constexpr std::int64_t kFew = 128;
  if (s.length <= kFew) {
    stages.emplace_back(by_line(context, program, "scatter_elements", s.width, s.lines(),
                                with_base({input(0), input(1), output(0), as_uint(s.length), as_uint(s.inner),
                                           as_uint(s.rows), as_uint(s.width), padding, as_uint(s.lines())})));
    return prepared(request, std::make_unique<StagedKernel>(context, "scatter_add by element", std::move(stages)));
  }
  const std::size_t group = std::bit_floor(std::min<std::size_t>(256, context.limits().max_work_group));
  const std::int64_t block = 2 * static_cast<std::int64_t>(group);
  const auto count = static_cast<std::uint64_t>(s.count());
  const auto padded = std::max(block, static_cast<std::int64_t>(std::bit_ceil(count)));
  const std::size_t words_bytes = static_cast<std::size_t>(padded) * sizeof(std::uint64_t);
  const std::size_t begins_bytes = static_cast<std::size_t>(s.lines() + 1) * sizeof(std::uint32_t);
  const BufferArgument words = workspace(0, 8), begins = workspace(words_bytes);
  stages.emplace_back(by_line(context, program, "scatter_words", padded, 1,
                              {input(1), words, as_uint(s.length), as_uint(s.inner), as_uint(s.rows), padding,
                               as_uint(s.count()), as_uint(padded)}));
  add_sort(context, padded, block, stages);
  stages.emplace_back(by_line(context, program, "scatter_begins", s.lines() + 1, 1,
                              {words, begins, as_uint(padded), as_uint(s.lines())}));
  stages.emplace_back(by_line(context, program, "scatter_lines", (s.width + columns - 1) / columns, s.lines(),
                              with_base({input(0), words, begins, output(0), as_uint(s.width), as_uint(s.lines())})));
  return prepared(request, std::make_unique<StagedKernel>(context, "scatter_add by sorted indices", std::move(stages),
                                                          words_bytes + begins_bytes));
}

PreparedKernel prepare_scatter_add(Context& context, const ops::ScatterAdd& op, const KernelRequest& request) {
  const std::int64_t width = request.outputs[0].shape.elements() / op.rows();
  return prepare(context,
                 {1, request.inputs[1].shape.elements(), 1, width, op.rows(), op.padding(),
                  request.inputs.size() > ops::ScatterAdd::kBase},
                 request);
}

PreparedKernel prepare_scatter_add_along(Context& context, const ops::ScatterAddAlong& op,
                                         const KernelRequest& request) {
  const ops::AxisSizes s = ops::axis_sizes(request.inputs[0].shape, op.axis());
  return prepare(context, {s.outer, s.length, s.inner, 1, op.size(), -1}, request);
}

}  // namespace

void add_scatter_add(Kernels& kernels) {
  kernels.add<ops::ScatterAdd, prepare_scatter_add>();
  kernels.add<ops::ScatterAddAlong, prepare_scatter_add_along>();
}

}  // namespace concord::opencl
