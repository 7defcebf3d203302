// Pooling and its gradients on OpenCL devices: one kernel each. The gradients take epilogues. A window that has the
// whole image is a row of a reduction.
#include "concord/ops/pool.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>

#include "concord/core/check.hpp"
#include "concord/opencl/formula/affine.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/launch/strides.hpp"
#include "concord/opencl/ops/channels_last.hpp"
#include "concord/opencl/ops/lanes.hpp"
#include "concord/opencl/ops/reduce.hpp"
#include "concord/opencl/program/source.hpp"

namespace concord::opencl {

std::vector<std::string> pool_definitions(const ops::PoolSizes& sizes) {
  constexpr std::array<char, 3> kAxes{'D', 'H', 'W'};
  const ops::PoolOptions& o = sizes.options;
  std::vector<std::string> definitions;
  bool no_edges = !o.is_adaptive();
  for (std::size_t i = 0; i < 3; ++i) {
    definitions.push_back(fmt::format("KERNEL_{}={}", kAxes[i], o.kernel[i]));
    definitions.push_back(fmt::format("STRIDE_{}={}", kAxes[i], o.stride[i]));
    definitions.push_back(fmt::format("DILATION_{}={}", kAxes[i], o.dilation[i]));
    const std::int64_t end = (sizes.dst[i] - 1) * o.stride[i] + o.dilation[i] * (o.kernel[i] - 1) + 1;
    no_edges = no_edges && o.padding[i] == 0 && end <= sizes.src[i];
    CONCORD_CHECK(!o.is_adaptive() || (sizes.dst[i] + 1) * (sizes.src[i] + 1) < std::int64_t{1} << 31, NotSupported,
                  "pool: {} windows over {} pixels exceed the 2^31 - 1 of the kernel's products", sizes.dst[i],
                  sizes.src[i]);
  }
  if (o.divisor != 0) definitions.push_back(fmt::format("DIVISOR={}", o.divisor));
  if (o.count_include_pad) definitions.emplace_back("COUNT_PADDING");
  if (o.is_adaptive()) definitions.emplace_back("ADAPTIVE");
  if (no_edges) definitions.emplace_back("NO_EDGES");
  if (no_edges && o.stride == o.kernel && o.dilation == ops::Spatial{1, 1, 1}) definitions.emplace_back("APART");
  return definitions;
}

namespace {

/// The result of a kernel: dst, or src for a gradient.
enum class Item { dst, src };

std::int64_t pixels_of(const ops::PoolSizes& sizes) { return sizes.src[0] * sizes.src[1] * sizes.src[2]; }

/// Whether the pixels of a window are a row in memory, of some length.
bool is_row(const ops::PoolSizes& sizes) { return sizes.is_global() && pixels_of(sizes) > 1; }

/// The strides of an operand of the epilogue from row to row of src, and within a row.
std::optional<std::vector<std::int64_t>> epilogue_strides(const Shape& operand, const Shape& src) {
  return grouped_strides(operand, src, std::array<std::size_t, 2>{src.rank() - 1, src.rank()});
}

EpilogueText epilogue_text(const KernelRequest& request, const Epilogue* epilogue) {
  if (epilogue == nullptr) return {};
  std::vector<EpilogueOperand> extra;
  for (std::size_t i = epilogue->first_extra; i < request.inputs.size(); ++i) {
    const auto strides = epilogue_strides(request.inputs[i].shape, request.outputs[0].shape).value();
    extra.push_back({i, request.inputs[i].dtype, 0, strides[0], 0, strides[1]});
  }
  return gemm_epilogue(epilogue->expression, extra);
}

/// The pixels of a window along each axis; of the largest, if their sizes differ.
ops::Spatial window_of(const ops::PoolSizes& sizes) {
  if (!sizes.options.is_adaptive()) return sizes.options.kernel;
  ops::Spatial window{};
  for (std::size_t i = 0; i < window.size(); ++i) window[i] = divide_up(sizes.src[i], sizes.dst[i]);
  return window;
}

/// Whether items share a window (cl_kernels/ops/pool_lanes.cl). They do where windows are large, and so far apart that
/// items with a window each would read from memory of their own.
bool has_far_windows(const Context& context, const ops::PoolSizes& sizes) {
  constexpr std::int64_t kManyPixels = 64, kFar = 8;
  if (context.limits().is_cpu) return false;
  const ops::Spatial window = window_of(sizes);
  const std::int64_t distance = sizes.options.is_adaptive() ? window[2] : sizes.options.stride[2];
  return distance >= kFar && window[0] * window[1] * window[2] >= kManyPixels;
}

/// Makes items share a window; `count`: of windows.
void share_windows(const Context& context, const ops::PoolSizes& sizes, std::int64_t count, Stage& stage,
                   std::vector<std::string>& definitions) {
  constexpr std::uint64_t kMostColumns = 32;
  const ops::Spatial window = window_of(sizes);
  const Lanes lanes = lanes_for(context, window[0] * window[1] * window[2] / 2, 1);
  const std::uint64_t columns = std::min(kMostColumns, std::bit_ceil(static_cast<std::uint64_t>(window[2])));
  for (std::string& definition : lanes.definitions()) definitions.push_back(std::move(definition));
  definitions.push_back(fmt::format("LANE_COLUMNS={}", std::min<std::uint64_t>(columns, lanes.lanes)));
  lanes.cover(stage, count);
}

PreparedKernel prepare(Context& context, std::string_view name, const KernelRequest& request,
                       const ops::PoolSizes& sizes, Item item, const std::string& function,
                       std::vector<Argument> arguments, const Epilogue* epilogue = nullptr) {
  std::vector<std::string> definitions = pool_definitions(sizes);
  const ops::Spatial& padding = sizes.options.padding;
  const ops::Spatial& size = item == Item::dst ? sizes.dst : sizes.src;
  const std::int64_t width = size[2], rows = sizes.n * sizes.c * size[0] * size[1];
  const std::int64_t pixels = pixels_of(sizes);
  CONCORD_CHECK(std::max(rows * width, pixels) < std::int64_t{1} << 31, NotSupported,
                "{}: {} elements exceed the 2^31 - 1 of the kernel", name, std::max(rows * width, pixels));
  arguments.emplace_back(static_cast<std::uint32_t>(rows * width));
  add_divisor(arguments, width);
  add_divisor(arguments, size[1]);
  for (const std::int64_t value : {sizes.src[1], sizes.src[2], sizes.dst[1], sizes.dst[2], padding[1], padding[2]}) {
    arguments.emplace_back(static_cast<std::int32_t>(value));
  }
  if (sizes.src[0] != 1 || sizes.dst[0] != 1 || padding[0] != 0) {
    definitions.emplace_back("VOLUME");
    add_divisor(arguments, size[0]);
    for (const std::int64_t value : {sizes.src[0], sizes.dst[0], padding[0]}) {
      arguments.emplace_back(static_cast<std::int32_t>(value));
    }
  }
  const EpilogueText text = epilogue_text(request, epilogue);
  Stage stage;
  stage.function = function;
  stage.arguments = {PackedArguments{std::move(arguments)}};
  stage.arguments.insert(stage.arguments.end(), text.arguments.begin(), text.arguments.end());
  const bool is_shared = item == Item::dst && has_far_windows(context, sizes);
  if (is_shared) {
    share_windows(context, sizes, rows * width, stage, definitions);
  } else if (context.limits().is_cpu) {
    definitions.emplace_back("WHOLE_ROWS");
    stage.global = {static_cast<std::size_t>(rows), 1, 1};
  } else {
    const std::size_t group = std::min<std::size_t>(128, context.limits().max_work_group);
    stage.global = {(static_cast<std::size_t>(rows * width) + group - 1) / group * group, 1, 1};
    stage.local = {group, 1, 1};
  }
  const std::string file = is_shared ? "ops/pool_lanes.cl" : "ops/pool.cl";
  stage.program = context.program_from(text.text + kernel_source(file), definitions);
  return prepared(request, std::make_unique<StagedKernel>(context, std::string(name),
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

std::string global_name(std::string_view name) { return fmt::format("{} global", name); }

PreparedKernel prepare_max_pool(Context& context, const ops::MaxPool& op, const KernelRequest& request) {
  if (auto kernel = prepare_max_pool_channels_last(context, op, request)) return *std::move(kernel);
  const ops::PoolSizes sizes = ops::pool_sizes(request.inputs[0].shape, op.options());
  if (is_row(sizes))
    return prepare_row_maxima(context, global_name(op.name()), request, sizes.n * sizes.c, pixels_of(sizes));
  return prepare(context, op.name(), request, sizes, Item::dst, "pool_max_forward", {input(0), output(0), output(1)});
}

PreparedKernel prepare_max_pool_backward(Context& context, const ops::MaxPoolBackward& op, const KernelRequest& request,
                                         const Epilogue* epilogue) {
  if (auto kernel = prepare_max_pool_backward_channels_last(context, op, request, epilogue)) return *std::move(kernel);
  return prepare(context, op.name(), request, ops::pool_sizes(op.src(), op.options()), Item::src, "pool_max_backward",
                 {input(0), input(1), output(0)}, epilogue);
}

PreparedKernel prepare_avg_pool(Context& context, const ops::AvgPool& op, const KernelRequest& request) {
  if (auto kernel = prepare_avg_pool_channels_last(context, op, request)) return *std::move(kernel);
  const ops::PoolSizes sizes = ops::pool_sizes(request.inputs[0].shape, op.options());
  if (is_row(sizes)) {
    return prepare_row_means(context, global_name(op.name()), request, sizes.n * sizes.c, pixels_of(sizes),
                             static_cast<float>(sizes.global_divisor()));
  }
  return prepare(context, op.name(), request, sizes, Item::dst, "pool_average_forward", {input(0), output(0)});
}

PreparedKernel prepare_avg_pool_backward(Context& context, const ops::AvgPoolBackward& op, const KernelRequest& request,
                                         const Epilogue* epilogue) {
  if (auto kernel = prepare_avg_pool_backward_channels_last(context, op, request, epilogue)) return *std::move(kernel);
  return prepare(context, op.name(), request, ops::pool_sizes(op.src(), op.options()), Item::src,
                 "pool_average_backward", {input(0), output(0)}, epilogue);
}

template <class Op>
using PrepareGradient = PreparedKernel (*)(Context&, const Op&, const KernelRequest&, const Epilogue*);

template <class Op, PrepareGradient<Op> prepare_gradient>
PreparedKernel prepare_unfused_pool(Context& context, const Op& op, const KernelRequest& request) {
  return prepare_gradient(context, op, request, nullptr);
}

template <class Op, PrepareGradient<Op> prepare_gradient>
PreparedKernel prepare_fused_pool(Context& context, const Op& op, const KernelRequest& request,
                                  const Epilogue& epilogue) {
  return prepare_gradient(context, op, request, &epilogue);
}

template <class Op>
bool pool_supports_epilogue(const Op&, std::span<const TensorSpec>, const TensorSpec& src, const Expression& epilogue,
                            std::span<const TensorSpec> extra) {
  if (epilogue.uses_coordinates() || !is_affine(epilogue) || src.dtype != DType::f32) return false;
  // Both files take the same operands, so that none is reordered for one of them.
  return std::ranges::all_of(extra, [&](const TensorSpec& spec) {
    return is_block_operand(spec, src.shape, ChannelAxis::second) && epilogue_strides(spec.shape, src.shape);
  });
}

template <class Op, PrepareGradient<Op> prepare_gradient>
void register_gradient(Kernels& kernels) {
  kernels.add<Op, prepare_unfused_pool<Op, prepare_gradient>>();
  kernels.add_fused<Op, pool_supports_epilogue<Op>, prepare_fused_pool<Op, prepare_gradient>>();
}

}  // namespace

void add_pool(Kernels& kernels) {
  kernels.add<ops::MaxPool, prepare_max_pool>();
  register_gradient<ops::MaxPoolBackward, prepare_max_pool_backward>(kernels);
  kernels.add<ops::AvgPool, prepare_avg_pool>();
  register_gradient<ops::AvgPoolBackward, prepare_avg_pool_backward>(kernels);
}

}  // namespace concord::opencl
