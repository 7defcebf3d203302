// Reduce on OpenCL devices: the kernels of its passes (reduce_passes.hpp).
#include "concord/opencl/ops/reduce.hpp"

#include <algorithm>

#include "concord/core/check.hpp"
#include "concord/opencl/formula/affine.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/launch/strides.hpp"
#include "concord/opencl/ops/channels_last.hpp"
#include "concord/opencl/ops/reduce_passes.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {
namespace {

/// Of the kernels in which lanes share a row (cl_kernels/ops/reduce_lanes.h). `buffers` are src and dst.
Stage lanes_stage(Context& context, const ReducePass& pass, const Lanes& lanes, const std::string& text,
                  const std::string& function, std::vector<std::string> definitions, std::vector<Argument> buffers,
                  const std::vector<Argument>& behind) {
  const bool is_wide = is_wide_index(std::max(pass.outer * pass.length * pass.inner, pass.outputs()));
  for (std::string& definition : lanes.definitions()) definitions.push_back(std::move(definition));
  definitions.push_back(fmt::format("VECTOR={}", pass.width));
  definitions.push_back(fmt::format("UNROLL={}", unroll_of(pass, lanes)));
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
    add_index(divide_up(pass.part(), pass.width));
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
