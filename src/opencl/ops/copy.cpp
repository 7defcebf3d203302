// The copy family: every operator as strided copies into its result; padding fills first.
#include "concord/ops/copy.hpp"

#include <fmt/format.h>

#include <bit>
#include <numeric>
#include <optional>

#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/launch/blocking.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/launch/strides.hpp"
#include "concord/opencl/ops/channels_last.hpp"
#include "concord/opencl/program/source.hpp"
#include "concord/ops/all_reduce.hpp"

namespace concord::opencl {
namespace {

/// The integer type that moves elements of this type.
std::string element_of(DType type) {
  switch (size_of(type)) {
    case 1: return "uchar";
    case 2: return "ushort";
    default: return "uint";
  }
}

/// Where a copy reads and writes: offsets in elements, and the loop over operand 0 (src) and operand 1 (dst).
struct Route {
  StridedLoop loop;
  std::int64_t src_start = 0, dst_start = 0;
};

/// The start of a copy kernel's text: how to find the elements of both operands of `loop`.
std::string head_of(const IndexText& text, bool wide) {
  std::string head = wide ? "#define WIDE_INDEX\n" : "";
  head += kernel_source("shared/index.h");
  head += fmt::format("#define COPY_PARAMETERS {}\n#define COPY_ARGUMENTS {}\n", text.parameters(), text.names());
  for (std::size_t k = 0; k < 2; ++k) {
    head += fmt::format("static inline index_t {}(const index_t i COPY_PARAMETERS) {{\n{}  return {};\n}}\n",
                        k == 0 ? "copy_src" : "copy_dst", text.coordinates(), text.place(k));
  }
  return head;
}

/// The operands of a copy from input `index` to output 0, and the loop's sizes and strides.
std::vector<Argument> arguments_of(DType type, std::size_t index, const Route& route, const IndexText& text) {
  BufferArgument src = input(index, size_of(type)), dst = output(0, size_of(type));
  src.extra_bytes = static_cast<std::size_t>(route.src_start) * size_of(type);
  dst.extra_bytes = static_cast<std::size_t>(route.dst_start) * size_of(type);
  std::vector<Argument> arguments{src, dst};
  arguments.insert(arguments.end(), text.arguments().begin(), text.arguments().end());
  return arguments;
}

/// The dimension along which src is contiguous, where it is another than dst's and tiles of both pay; else nothing.
std::optional<std::size_t> transposed_dimension(const Limits& limits, const StridedLoop& loop) {
  constexpr std::int64_t kWorthwhile = 8;
  constexpr std::size_t kGroup = 256, kTileBytes = 32 * 33 * 4;
  const std::size_t last = loop.dims.size() - 1;
  if (limits.max_work_group < kGroup || limits.local_memory < kTileBytes) return std::nullopt;
  if (loop.strides[1][last] != 1 || loop.dims[last] < kWorthwhile) return std::nullopt;
  for (std::size_t d = 0; d < last; ++d) {
    if (loop.strides[0][d] == 1 && loop.dims[d] >= kWorthwhile) return d;
  }
  return std::nullopt;
}

/// A copy in tiles over the dimensions `row` and the innermost one; the others make planes.
Stage transpose_stage(Context& context, DType type, std::size_t index, const Route& route, StridedLoop loop,
                      std::size_t row) {
  const bool wide = loop.is_wide();
  const std::size_t column = loop.dims.size() - 1;
  const std::int64_t rows = loop.dims[row], columns = loop.dims[column];
  const std::int64_t src_stride = loop.strides[0][column], dst_stride = loop.strides[1][row];
  loop.dims[row] = loop.dims[column] = 1;
  const StridedLoop planes = collapsed(std::move(loop));
  const IndexText text(planes, wide);
  Stage stage;
  stage.program = context.program_from(head_of(text, wide) + kernel_source("ops/copy_transpose.cl"),
                                       {"ELEMENT=" + element_of(type)});
  stage.function = "copy_transpose";
  stage.arguments = arguments_of(type, index, route, text);
  for (const std::int64_t value : {rows, columns, src_stride, dst_stride}) {
    stage.arguments.push_back(index_argument(value, wide));
  }
  const std::int64_t tiles = (rows + 31) / 32 * ((columns + 31) / 32) * planes.elements();
  stage.global = {static_cast<std::size_t>(tiles) * 32, 8, 1};
  stage.local = {32, 8, 1};
  return stage;
}

/// A copy on a CPU.
Stage runs_stage(Context& context, DType type, std::size_t index, const Route& route, const StridedLoop& loop) {
  const bool wide = loop.is_wide();
  const IndexText text(loop, wide);
  const Chunking chunking = chunking_of(context.limits(), loop.elements());
  std::string source = head_of(text, wide);
  source += fmt::format(
      "static inline index_t copy_run_length(const index_t i, const index_t end COPY_PARAMETERS) {{\n{}  return "
      "{};\n}}\n",
      text.coordinates(), text.run_length());
  source += fmt::format("#define SRC_STEP {}\n#define DST_STEP {}\n", text.step(0), text.step(1));
  Stage stage;
  stage.program =
      context.program_from(source + kernel_source("ops/copy_contiguous.cl"), {"ELEMENT=" + element_of(type)});
  stage.function = "copy";
  stage.arguments = arguments_of(type, index, route, text);
  stage.arguments.push_back(index_argument(chunking.chunk, wide));
  stage.arguments.push_back(index_argument(loop.elements(), wide));
  chunking.apply(stage);
  return stage;
}

/// A copy from input `index` to output 0.
Stage copy_stage(Context& context, DType type, std::size_t index, const Route& route) {
  const StridedLoop loop = collapsed(route.loop);
  if (context.limits().is_cpu) return runs_stage(context, type, index, route, loop);
  if (const auto row = transposed_dimension(context.limits(), loop)) {
    return transpose_stage(context, type, index, route, loop, *row);
  }
  const bool wide = loop.is_wide();
  const IndexText text(loop, wide);
  const Blocking blocking = blocking_of(context.limits(), loop.elements());
  Stage stage;
  stage.program = context.program_from(head_of(text, wide) + kernel_source("ops/copy.cl"),
                                       {blocking.definition(), "ELEMENT=" + element_of(type)});
  stage.function = "copy";
  stage.arguments = arguments_of(type, index, route, text);
  stage.arguments.push_back(index_argument(loop.elements(), wide));
  blocking.apply(stage);
  return stage;
}

/// The bits of `value` as an element of this type.
std::uint32_t bits_of(DType type, float value) {
  switch (type) {
    case DType::f32: return std::bit_cast<std::uint32_t>(value);
    case DType::i32: return std::bit_cast<std::uint32_t>(static_cast<std::int32_t>(value));
    case DType::u8: return static_cast<std::uint8_t>(value);
    default: break;
  }
  if (value == 0) return 0;
  throw NotSupported(fmt::format("OpenCL padding of {} with other values than 0", name_of(type)));
}

Stage fill_stage(Context& context, const TensorSpec& spec, float value) {
  const std::int64_t elements = spec.shape.elements();
  const bool wide = is_wide_index(elements);
  const Blocking blocking = blocking_of(context.limits(), elements);
  std::vector<std::string> definitions{blocking.definition(), "ELEMENT=" + element_of(spec.dtype)};
  if (wide) definitions.emplace_back("WIDE_INDEX");
  Stage stage;
  stage.program = context.program("formula/fill.cl", definitions);
  stage.function = "fill";
  stage.arguments = {output(0, size_of(spec.dtype)), bits_of(spec.dtype, value), index_argument(elements, wide)};
  blocking.apply(stage);
  return stage;
}

std::vector<std::int64_t> dims_of(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

std::vector<std::int64_t> product(std::vector<std::int64_t> strides, const std::vector<std::int64_t>& steps) {
  for (std::size_t d = 0; d < strides.size(); ++d) strides[d] *= steps[d];
  return strides;
}

std::int64_t dot(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), std::int64_t{0});
}

PreparedKernel kernel_of(Context& context, const KernelRequest& request, const std::string& name,
                         std::vector<StagedKernel::AnyStage> stages) {
  return prepared(request, std::make_unique<StagedKernel>(context, name, std::move(stages)));
}

/// A transposition to whose result the operand's layout gives the same bytes; compile makes it a view where values need
/// not be kept.
std::optional<PreparedKernel> prepare_turned(Context& context, const ops::Transpose& op, const KernelRequest& request) {
  const ChannelsLast* const stored = as_channels_last(request.input_layouts[0]);
  const Layout turned = stored == nullptr ? nullptr : stored->transposed(op.order(), request.outputs[0]);
  if (!turned) return std::nullopt;
  const std::int64_t words = static_cast<std::int64_t>(stored->bytes() / size_of(DType::f32));
  const Route route{{{words}, {{1}, {1}}, {}}};
  PreparedKernel kernel = kernel_of(context, request, "copy as it lies", {copy_stage(context, DType::f32, 0, route)});
  kernel.input_layouts[0] = request.input_layouts[0];
  kernel.output_layouts[0] = turned;
  return kernel;
}

PreparedKernel prepare_transpose(Context& context, const ops::Transpose& op, const KernelRequest& request) {
  if (auto kernel = prepare_turned(context, op, request)) return *std::move(kernel);
  const Shape& src = request.inputs.at(0).shape;
  const Shape& dst = request.outputs.at(0).shape;
  std::vector<std::int64_t> src_strides;
  for (const std::size_t axis : op.order()) src_strides.push_back(src.strides()[axis]);
  const Route route{{dims_of(dst), {src_strides, dst.strides()}, {}}};
  return kernel_of(context, request, "copy transposed", {copy_stage(context, request.inputs[0].dtype, 0, route)});
}

PreparedKernel prepare_all_reduce(Context& context, const ops::AllReduce&, const KernelRequest& request) {
  const Route route{{{request.outputs.at(0).shape.elements()}, {{1}, {1}}, {}}};
  return kernel_of(context, request, "copy", {copy_stage(context, DType::f32, 0, route)});
}

PreparedKernel prepare_slice(Context& context, const ops::Slice& op, const KernelRequest& request) {
  if (auto kernel = prepare_slice_channels_last(context, op, request)) return *std::move(kernel);
  const std::vector<std::int64_t> src_strides = request.inputs.at(0).shape.strides();
  const Shape& dst = request.outputs.at(0).shape;
  const Route route{{dims_of(dst), {product(src_strides, op.step()), dst.strides()}, {}}, dot(src_strides, op.start())};
  return kernel_of(context, request, "copy slice", {copy_stage(context, request.inputs[0].dtype, 0, route)});
}

PreparedKernel prepare_pad(Context& context, const ops::Pad& op, const KernelRequest& request) {
  const Shape& src = request.inputs.at(0).shape;
  const std::vector<std::int64_t> dst_strides = request.outputs.at(0).shape.strides();
  const Route route{
      {dims_of(src), {src.strides(), product(dst_strides, op.step())}, {}}, 0, dot(dst_strides, op.before())};
  return kernel_of(
      context, request, "fill, copy",
      {fill_stage(context, request.outputs[0], op.value()), copy_stage(context, request.inputs[0].dtype, 0, route)});
}

PreparedKernel prepare_concat(Context& context, const ops::Concat& op, const KernelRequest& request) {
  if (auto kernel = prepare_concat_channels_last(context, op, request)) return *std::move(kernel);
  const std::vector<std::int64_t> dst_strides = request.outputs.at(0).shape.strides();
  std::vector<StagedKernel::AnyStage> stages;
  std::int64_t position = 0;
  for (std::size_t k = 0; k < request.inputs.size(); ++k) {
    const Shape& src = request.inputs[k].shape;
    const Route route{{dims_of(src), {src.strides(), dst_strides}, {}}, 0, position * dst_strides[op.axis()]};
    stages.emplace_back(copy_stage(context, request.inputs[k].dtype, k, route));
    position += src.dims()[op.axis()];
  }
  return kernel_of(context, request, "copy each", std::move(stages));
}

}  // namespace

void add_copy(Kernels& kernels) {
  kernels.add<ops::Transpose, prepare_transpose>();
  kernels.add<ops::AllReduce, prepare_all_reduce>();
  kernels.add<ops::Slice, prepare_slice>();
  kernels.add<ops::Pad, prepare_pad>();
  kernels.add<ops::Concat, prepare_concat>();
}

}  // namespace concord::opencl
