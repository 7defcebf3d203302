// How a reduction is cut into passes: one for every run of neighbouring reduced axes, and a second one where a pass is
// cut into parts to occupy the device. On GPUs one pass does both, or two runs with kept axes between them, where large
// work-groups are sooner done with it than another launch begins.
#include "concord/opencl/ops/reduce_passes.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "concord/opencl/launch/strides.hpp"

namespace concord::opencl {
namespace {

struct Run {
  std::int64_t size;
  bool reduced;
};

/// The dimensions with neighbours of one kind joined and those of size 1 left out.
std::vector<Run> runs_of(const Shape& src, const std::vector<std::size_t>& axes) {
  std::vector<Run> runs;
  for (std::size_t axis = 0; axis < src.rank(); ++axis) {
    const std::int64_t size = src.dims()[axis];
    const bool reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (size == 1) continue;
    if (!runs.empty() && runs.back().reduced == reduced) {
      runs.back().size *= size;
    } else {
      runs.push_back({size, reduced});
    }
  }
  return runs;
}

bool has_few_rows(const Context& context, const ReducePass& pass) {
  return pass.rows() < 2 * context.limits().compute_units;
}

/// The width that the kernel for GPUs can read.
std::int64_t width_of(const Context& context, ops::ReduceKind kind, const ReducePass& pass) {
  const std::int64_t adjacent = pass.run > 0 ? pass.run : pass.length;
  const bool is_plain = context.limits().is_cpu || kind == ops::ReduceKind::norm || kind == ops::ReduceKind::argmax;
  return is_plain || pass.inner > 1 || adjacent % 4 != 0 ? 1 : 4;
}

/// Whether a second launch costs more than it saves: about 5 µs, in which an item reads 64 values, eight at once at a
/// time.
bool is_soon_done(const Context& context, const ReducePass& pass) {
  constexpr std::int64_t kValues = 64;
  return pass.length <= kValues * static_cast<std::int64_t>(lanes_of(context, pass).lanes);
}

// Cutting helps when there are too few rows to occupy the device; on CPUs it also bounds the length of a chain of
// additions, and with it the rounding error.
std::int64_t parts_for(const Context& context, const ReducePass& pass) {
  const std::int64_t units = context.limits().compute_units;
  if (context.limits().is_cpu) {
    const std::int64_t items = pass.outer * divide_up(pass.inner, 16), chain = pass.inner == 1 ? 16384 : 1024;
    const std::int64_t busy = items < 4 * units ? divide_up(8 * units, items) : 1;
    return std::max(divide_up(pass.length, chain), std::min(busy, pass.length / 2048));
  }
  constexpr std::int64_t kShortest = 256, kGroupsPerUnit = 8;
  if (!has_few_rows(context, pass) || is_soon_done(context, pass)) return 1;
  return std::min(divide_up(kGroupsPerUnit * units, pass.rows()), divide_up(pass.length, kShortest));
}

/// The only pass of a reduction of the axes in front of and behind those that stay, as of images by channel; nothing
/// where two passes are better.
std::optional<ReducePass> single_pass(const Context& context, ops::ReduceKind kind, const std::vector<Run>& runs) {
  if (context.limits().is_cpu || runs.size() != 3 || !runs[0].reduced) return {};
  ReducePass pass{.outer = runs[1].size, .length = runs[0].size * runs[2].size, .run = runs[2].size};
  pass.width = width_of(context, kind, pass);
  const std::int64_t elements = pass.outputs() * pass.length;
  if (elements == 0 || is_wide_index(elements) || !is_soon_done(context, pass)) return {};
  return pass;
}

}  // namespace

/// The lanes of a pass of a GPU: larger groups where there are few of them, and where one pass does the work of two.
/// Where there are many short rows, a lane has eight reads instead of four, so that groups end sooner.
Lanes lanes_of(const Context& context, const ReducePass& pass) {
  constexpr std::size_t kUsual = 256, kLarge = 1024;
  const std::int64_t reads = divide_up(pass.part(), pass.width);
  if (pass.run > 0 || has_few_rows(context, pass)) return lanes_for(context, reads, pass.inner, kLarge);
  return lanes_for(context, pass.inner == 1 ? divide_up(reads, 2) : reads, pass.inner, kUsual);
}

std::uint64_t unroll_of(const ReducePass& pass, const Lanes& lanes) {
  constexpr std::uint64_t kMostReads = 8;
  const std::int64_t reads = divide_up(divide_up(pass.part(), pass.width), static_cast<std::int64_t>(lanes.lanes));
  return std::min(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, reads))), kMostReads);
}

std::vector<ReducePass> passes_of(const Context& context, const Shape& src, ops::ReduceKind kind,
                                  const std::vector<std::size_t>& axes) {
  std::vector<Run> runs = runs_of(src, axes);
  if (kind != ops::ReduceKind::norm) {
    if (const std::optional<ReducePass> pass = single_pass(context, kind, runs)) return {*pass};
  }
  std::vector<ReducePass> passes;
  for (std::size_t i = runs.size(); i-- > 0;) {
    if (!runs[i].reduced) continue;
    ReducePass pass;
    pass.length = runs[i].size;
    for (std::size_t j = 0; j < i; ++j) pass.outer *= runs[j].size;
    // Reduced runs further in are gone by now.
    for (std::size_t j = i + 1; j < runs.size(); ++j) pass.inner *= runs[j].size;
    runs[i].size = 1;
    pass.width = width_of(context, kind, pass);
    pass.parts = pass.outputs() == 0 ? 1 : std::max<std::int64_t>(1, parts_for(context, pass));
    pass.parts = divide_up(std::max<std::int64_t>(1, pass.length), std::max<std::int64_t>(1, pass.part()));
    passes.push_back(pass);
    if (pass.parts == 1) continue;
    ReducePass join{.outer = pass.outer, .length = pass.parts, .inner = pass.inner};
    join.width = width_of(context, kind, join);
    passes.push_back(join);
  }
  if (passes.empty()) passes.push_back({.inner = src.elements()});
  return passes;
}

}  // namespace concord::opencl
