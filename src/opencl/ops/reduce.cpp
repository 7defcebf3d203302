// Reduce on OpenCL devices: one pass for every run of neighbouring reduced axes, innermost first, and a second one
// where a pass is cut into parts to occupy the device. On GPUs one pass does both, or two runs with kept axes between
// them, where large work-groups are sooner done with it than another launch begins.
#include "concord/opencl/ops/reduce.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "concord/core/check.hpp"
#include "concord/opencl/formula/affine.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/launch/strides.hpp"
#include "concord/opencl/ops/channels_last.hpp"
#include "concord/opencl/ops/lanes.hpp"
#include "concord/opencl/program/source.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::opencl {
namespace {

/// src (outer, length, inner) → dst (outer, parts, inner). With a `run`: src (length / run, outer, run) → dst (outer).
/// `width` neighbouring values of a row are read together.
struct ReducePass {
  std::int64_t outer = 1, length = 1, inner = 1, parts = 1, run = 0, width = 1;
  [[nodiscard]] std::int64_t outputs() const { return outer * parts * inner; }
  [[nodiscard]] std::int64_t part() const { return round_up(divide_up(length, parts), width); }
  /// Groups of neighbouring rows.
  [[nodiscard]] std::int64_t rows() const { return outer * parts * divide_up(inner, 32); }
};

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

/// The lanes of a pass of a GPU: larger groups where there are few of them, and where one pass does the work of two.
/// Where there are many short rows, a lane has eight reads instead of four, so that groups end sooner.
Lanes lanes_of(const Context& context, const ReducePass& pass) {
  constexpr std::size_t kUsual = 256, kLarge = 1024;
  const std::int64_t reads = divide_up(pass.part(), pass.width);
  if (pass.run > 0 || has_few_rows(context, pass)) return lanes_for(context, reads, pass.inner, kLarge);
  return lanes_for(context, pass.inner == 1 ? divide_up(reads, 2) : reads, pass.inner, kUsual);
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

/// Of the kernels in which lanes share a row (cl_kernels/ops/reduce_lanes.h). `buffers` are src and dst.
Stage lanes_stage(Context& context, const ReducePass& pass, const Lanes& lanes, const std::string& text,
                  const std::string& function, std::vector<std::string> definitions, std::vector<Argument> buffers,
                  const std::vector<Argument>& behind) {
  constexpr std::uint64_t kMostReads = 8;
  const bool is_wide = is_wide_index(std::max(pass.outer * pass.length * pass.inner, pass.outputs()));
  const std::int64_t reads = divide_up(pass.part(), pass.width),
                     lane_reads = divide_up(reads, static_cast<std::int64_t>(lanes.lanes));
  const std::uint64_t unroll = std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, lane_reads)));
  for (std::string& definition : lanes.definitions()) definitions.push_back(std::move(definition));
  definitions.push_back(fmt::format("VECTOR={}", pass.width));
  definitions.push_back(fmt::format("UNROLL={}", std::min(unroll, kMostReads)));
  if (is_wide) definitions.emplace_back("WIDE_INDEX");

  const auto add_index = [&](std::int64_t value) { buffers.push_back(index_argument(value, is_wide)); };
  const auto add_index_divisor = [&](std::int64_t value) {
    const FastDivisor divisor = is_wide ? FastDivisor{} : fast_divisor(value);
    add_index(value);
    buffers.insert(buffers.end(), {divisor.multiplier, divisor.shift});
  };
  add_index(pass.outputs());
  add_index(pass.length / pass.width);
  if (pass.inner > 1) {
    definitions.emplace_back("INTERLEAVED");
    add_index_divisor(pass.inner);
  }
  if (pass.parts > 1) {
    definitions.emplace_back("IN_PARTS");
    add_index_divisor(pass.parts);
    add_index(reads);
  }
  if (pass.run > 0) {
    definitions.emplace_back("IN_RUNS");
    add_index_divisor(pass.run / pass.width);
    add_index(pass.run / pass.width * (pass.outer - 1));
  }
  std::vector<Argument> arguments{PackedArguments{std::move(buffers)}};
  arguments.insert(arguments.end(), behind.begin(), behind.end());
  Stage stage{context.program_from(text, definitions), function, std::move(arguments)};
  lanes.cover(stage, pass.outputs());
  return stage;
}

Stage stage_of(Context& context, const ReducePass& pass, const std::string& kind, BufferArgument src,
               const BufferArgument& dst, const EpilogueText& epilogue) {
  const std::string text = epilogue.text + kernel_source(kind == "NORM" ? "ops/reduce_norm.cl" : "ops/reduce.cl");
  if (!context.limits().is_cpu) {
    src.element_size *= size(pass.width);
    return lanes_stage(context, pass, lanes_of(context, pass), text, "reduce_lanes", {"KIND=" + kind}, {src, dst},
                       epilogue.arguments);
  }
  std::vector<Argument> arguments{src, dst, as_ulong(pass.length), as_ulong(pass.part()), as_ulong(pass.parts)};
  const PendingProgram program = context.program_from(text, {"KIND=" + kind, "LANES=1", "ROWS=1", "UNROLL=1"});
  const auto rows = static_cast<std::size_t>(pass.outer * pass.parts);
  if (pass.inner == 1) {
    arguments.insert(arguments.end(), epilogue.arguments.begin(), epilogue.arguments.end());
    return {program, "reduce_rows", std::move(arguments), {rows, 1, 1}, {0, 0, 0}};
  }
  arguments.push_back(as_ulong(pass.inner));
  const auto columns = static_cast<std::size_t>(divide_up(pass.inner, 16));
  return {program, "reduce_columns", std::move(arguments), {columns, rows, 1}, {0, 0, 0}};
}

/// The places of the largest values of `length` into output `places`, and these values into output 0, if there are two.
PreparedKernel prepare_places(Context& context, std::string_view name, const KernelRequest& request,
                              const ReducePass& pass, std::size_t places) {
  CONCORD_CHECK(pass.length < std::int64_t{1} << 31, NotSupported, "{} over {} elements", name, pass.length);
  std::vector<std::string> definitions{"KIND=MAXIMUM"};
  std::vector<Argument> behind;
  if (places != 0) {
    definitions.emplace_back("WITH_VALUES");
    behind.emplace_back(output(0));
  }
  const Lanes lanes = lanes_for(context, pass.length, pass.inner);
  Stage stage = lanes_stage(context, pass, lanes, kernel_source("ops/reduce.cl"), "reduce_argmax", definitions,
                            {input(0), output(places)}, behind);
  return prepared(request, std::make_unique<StagedKernel>(context, std::string(name),
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

PreparedKernel prepare_argmax(Context& context, const ops::Reduce& op, const KernelRequest& request) {
  const Shape& src = request.inputs[0].shape;
  ReducePass pass;
  for (std::size_t axis = 0; axis < src.rank(); ++axis) {
    const std::size_t reduced = op.axes().front();
    (axis < reduced ? pass.outer : axis > reduced ? pass.inner : pass.length) *= src.dims()[axis];
  }
  return prepare_places(context, "argmax", request, pass, 0);
}

std::string kind_of(ops::ReduceKind kind) {
  switch (kind) {
    case ops::ReduceKind::sum: return "SUM";
    case ops::ReduceKind::product: return "PRODUCT";
    case ops::ReduceKind::norm: return "NORM";
    case ops::ReduceKind::maximum: return "MAXIMUM";
    default: return "MINIMUM";
  }
}

PreparedKernel prepare_passes(Context& context, std::string_view name, const KernelRequest& request,
                              ops::ReduceKind kind, const std::vector<ReducePass>& passes,
                              const EpilogueText& epilogue) {
  constexpr std::int64_t kAligned = 4;  // for reads of four values
  std::vector<StagedKernel::AnyStage> stages;
  BufferArgument src = input(0);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const bool is_last = i + 1 == passes.size();
    const BufferArgument dst = is_last ? output(0) : workspace(bytes);
    stages.emplace_back(stage_of(context, passes[i], kind_of(kind), src, dst, is_last ? epilogue : EpilogueText{}));
    if (!is_last) bytes += size(round_up(passes[i].outputs(), kAligned)) * sizeof(float);
    src = dst;
  }
  const std::string full = fmt::format("{}, {} pass{}", name, passes.size(), passes.size() == 1 ? "" : "es");
  return prepared(request, std::make_unique<StagedKernel>(context, full, std::move(stages), bytes));
}

PreparedKernel prepare_passes(Context& context, const ops::Reduce& op, const KernelRequest& request,
                              const EpilogueText& epilogue) {
  return prepare_passes(context, op.name(), request, op.kind(),
                        passes_of(context, request.inputs[0].shape, op.kind(), op.axes()), epilogue);
}

PreparedKernel prepare_reduce(Context& context, const ops::Reduce& op, const KernelRequest& request) {
  if (auto kernel = prepare_reduce_channels_last(context, op, request)) return *std::move(kernel);
  if (op.kind() == ops::ReduceKind::argmax) return prepare_argmax(context, op, request);
  return prepare_passes(context, op, request, {});
}

/// Of a single sum or norm, whose epilogue the last pass applies: a mean. Other results may be of tensors that lie
/// channels-last.
bool reduce_supports_epilogue(const ops::Reduce& op, std::span<const TensorSpec>, const TensorSpec& output,
                              const Expression& epilogue, std::span<const TensorSpec>) {
  const bool is_sum = op.kind() == ops::ReduceKind::sum || op.kind() == ops::ReduceKind::norm;
  return is_sum && output.shape.elements() == 1 && !epilogue.uses_coordinates() && is_affine(epilogue);
}

PreparedKernel prepare_fused_reduce(Context& context, const ops::Reduce& op, const KernelRequest& request,
                                    const Epilogue& epilogue) {
  std::vector<EpilogueOperand> extra;
  for (std::size_t i = epilogue.first_extra; i < request.inputs.size(); ++i) {
    extra.push_back({i, request.inputs[i].dtype, 0, 0, 0, 0});
  }
  return prepare_passes(context, op, request, gemm_epilogue(epilogue.expression, extra));
}

}  // namespace

PreparedKernel prepare_row_means(Context& context, std::string_view name, const KernelRequest& request,
                                 std::int64_t rows, std::int64_t length, float divisor) {
  constexpr ops::ReduceKind kSum = ops::ReduceKind::sum;
  CONCORD_CHECK(length > 1, NotSupported, "{}: rows of {} values", name, length);
  const Expression quotient({scalar::input(0) / divisor}, 1);
  return prepare_passes(context, name, request, kSum, passes_of(context, Shape{rows, length}, kSum, {1}),
                        gemm_epilogue(quotient, {}));
}

PreparedKernel prepare_row_maxima(Context& context, std::string_view name, const KernelRequest& request,
                                  std::int64_t rows, std::int64_t length) {
  return prepare_places(context, name, request, {.outer = rows, .length = length}, 1);
}

void add_reduce(Kernels& kernels) {
  kernels.add<ops::Reduce, prepare_reduce>();
  kernels.add_fused<ops::Reduce, reduce_supports_epilogue, prepare_fused_reduce>();
  kernels.add_prologued<ops::Reduce, reduce_supports_prologue, prepare_prologued_reduce>();
}

}  // namespace concord::opencl
