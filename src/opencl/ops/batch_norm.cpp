// Batch normalisation with the statistics of the batch, and its gradient, on OpenCL devices: by work-groups
// (batch_norm.cl), or on CPUs by single items that run along planes (batch_norm_contiguous.cl). CONCORD_BATCH_NORM
// names one of them for every device: groups or runs.
#include <algorithm>
#include <bit>

#include "concord/core/check.hpp"
#include "concord/core/debug_options.hpp"
#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/formula/printer.hpp"
#include "concord/opencl/launch/alternatives.hpp"
#include "concord/opencl/launch/sizes.hpp"
#include "concord/opencl/launch/strides.hpp"
#include "concord/opencl/ops/channels_last.hpp"
#include "concord/opencl/program/source.hpp"
#include "concord/ops/normalise.hpp"

namespace concord::opencl {
namespace {

constexpr std::size_t kLeastThreads = 32;

bool by_groups(const Context& context) {
  const std::optional<std::string> forced = debug_choice("batch_norm", {"groups", "resident", "runs"});
  const bool in_groups = context.limits().max_work_group >= kLeastThreads;
  CONCORD_CHECK(in_groups || forced != "groups", NotSupported,
                "CONCORD_DEBUG: batch_norm is \"groups\", whose kernels need work-groups of {} items; the limit of "
                "this device is {}",
                kLeastThreads, context.limits().max_work_group);
  if (forced && forced != "resident") return *forced == "groups";
  return in_groups && context.alternatives().should_use_first(alternative::kBatchNormGroups,
                                                              alternative::kBatchNormRuns, !context.limits().is_cpu);
}

/// The partition of a batch (N, C, plane) into parts of one channel, and the program for these parts.
struct Cut {
  std::string file;
  std::vector<std::string> definitions;
  std::size_t threads, width;  // items a group; values of a plane that are read together
  std::int64_t channels, parts;
  std::vector<Argument> sizes;

  /// An image operand in the form that the kernels expect.
  [[nodiscard]] Argument images(BufferArgument operand) const {
    operand.element_size = width * sizeof(float);
    return operand;
  }
  /// The workspace holds vectors of four values per part: one for the forward pass, two for the gradient.
  static constexpr std::size_t kVector = 4 * sizeof(float);
  [[nodiscard]] static Argument sums() { return workspace(0, kVector); }
  [[nodiscard]] std::size_t sums_bytes() const { return static_cast<std::size_t>(channels * parts) * 2 * kVector; }
};

/// Parts of whole images.
Cut cut_into_runs(const Context& context, std::int64_t images, std::int64_t channels, std::int64_t plane) {
  const std::int64_t units = context.limits().compute_units;
  // About two items per compute unit, but at least a thousand values per part.
  const std::int64_t wanted = std::min(divide_up(2 * units, channels), divide_up(images * plane, 1024));
  const std::int64_t part = divide_up(images, std::clamp<std::int64_t>(wanted, 1, images));
  return {"ops/batch_norm_contiguous.cl",
          {},
          1,
          1,
          channels,
          divide_up(images, part),
          {static_cast<std::uint64_t>(images), static_cast<std::uint64_t>(channels), static_cast<std::uint64_t>(plane),
           static_cast<std::uint64_t>(part)}};
}

/// Parts of any length.
Cut cut_into_groups(const Context& context, std::int64_t images, std::int64_t channels, std::int64_t plane) {
  constexpr std::int64_t kGroupsPerUnit = 16, kMostParts = 128;
  const std::int64_t width = plane % 4 == 0 ? 4 : 1, unroll = width == 4 ? 4 : 8;
  const std::int64_t line = plane / width, values = images * line;
  CONCORD_CHECK(channels * line < std::int64_t{1} << 32, NotSupported,
                "batch_norm of images of {} channels of {} values: more than an index of 32 bits reaches", channels,
                plane);
  const auto limit =
      static_cast<std::int64_t>(std::bit_floor(std::min<std::size_t>(256, context.limits().max_work_group)));
  const auto useful = std::bit_ceil(static_cast<std::uint64_t>(divide_up(values, unroll)));
  const std::int64_t threads = std::min(limit, static_cast<std::int64_t>(std::max(kLeastThreads, useful)));
  // Each compute unit gets several groups, as long as each item has at least one iteration.
  const std::int64_t wanted = (kGroupsPerUnit * context.limits().compute_units + channels / 2) / channels;
  const std::int64_t most = std::min({kMostParts, threads, divide_up(values, threads * unroll)});
  const std::int64_t part = divide_up(divide_up(values, std::clamp<std::int64_t>(wanted, 1, most)), threads) * threads;
  const FastDivisor divisor = fast_divisor(line);
  return {"ops/batch_norm.cl",
          {fmt::format("THREADS={}", threads), fmt::format("WIDTH={}", width)},
          static_cast<std::size_t>(threads),
          static_cast<std::size_t>(width),
          channels,
          divide_up(values, part),
          {static_cast<std::uint32_t>(values), divisor.divisor, divisor.multiplier, divisor.shift,
           static_cast<std::uint32_t>((channels - 1) * line), static_cast<std::uint32_t>(part)}};
}

Cut cut_of(const Context& context, const Shape& src) {
  const std::int64_t images = src[0], channels = src[1], plane = src.elements() / (images * channels);
  CONCORD_CHECK(images * plane < std::int64_t{1} << 31, NotSupported,
                "batch_norm of {}: more than 2^31 - 1 values a channel", src.str());
  return by_groups(context) ? cut_into_groups(context, images, channels, plane)
                            : cut_into_runs(context, images, channels, plane);
}

/// The layout of an epilogue's operand relative to dst (N, C, …): one value per element, or one per plane.
struct NormOperand {
  bool is_whole;
  std::int64_t by_image, by_channel;  // strides, where not whole
};

std::optional<NormOperand> epilogue_operand(const TensorSpec& extra, const Shape& dst) {
  if (extra.dtype != DType::f32) return {};
  if (extra.shape.elements() == dst.elements()) return NormOperand{true, 0, 0};
  const auto strides = grouped_strides(extra.shape, dst, std::array<std::size_t, 3>{1, 2, dst.rank()});
  if (!strides || (*strides)[2] != 0) return {};
  return NormOperand{false, (*strides)[0], (*strides)[1]};
}

/// The expression for both files. batch_norm_contiguous.cl takes it value by value; batch_norm.cl reads the operands of
/// UNROLL places first and takes it for value_t.
EpilogueText epilogue_text(const Epilogue& epilogue, const KernelRequest& request, const Cut& cut) {
  EpilogueText text;
  const auto type = cut.width == 1 ? "float" : "float4";
  std::string parameters, formals = "float x0", actuals = "value", declarations, reads;
  std::array<std::string, 4> components{"(value).x", "(value).y", "(value).z", "(value).w"};
  std::vector<std::string> names{"x0"};
  for (std::size_t k = epilogue.first_extra; k < request.inputs.size(); ++k) {
    const NormOperand operand = epilogue_operand(request.inputs[k], request.outputs[0].shape).value();
    const std::string e = fmt::format("e{}", names.size()), x = fmt::format("x{}", names.size());
    std::string read = fmt::format("{0}[{0}_offset + (i)]", e);
    if (operand.is_whole) {
      parameters += fmt::format(", __global const {0} *restrict {1}, ulong {1}_offset", type, e);
      text.arguments.emplace_back(cut.images(input(k)));
    } else {
      parameters +=
          fmt::format(", __global const float *restrict {0}, ulong {0}_offset, ulong {0}_image, ulong {0}_channel", e);
      text.arguments.emplace_back(input(k));
      text.arguments.emplace_back(static_cast<std::uint64_t>(operand.by_image));
      text.arguments.emplace_back(static_cast<std::uint64_t>(operand.by_channel));
      read = fmt::format("{0}[{0}_offset + (image) * {0}_image + channel * {0}_channel]", e);
    }
    formals += ", float " + x;
    names.push_back(x);
    if (cut.threads == 1) {
      actuals += ", " + read;
      continue;
    }
    declarations += fmt::format(" value_t {}[UNROLL];", x);
    reads += fmt::format(" {}[k] = (value_t)({});", x, read);
    actuals += fmt::format(", {}[k]", x);
    for (std::size_t j = 0; j < 4; ++j) components[j] += fmt::format(", {}[k].{}", x, "xyzw"[j]);
  }
  text.text = fmt::format(
      "{}\n#define EPILOGUE_PARAMETERS {}\nstatic inline float batch_norm_epilogue({}) {{\n{}"
      "  return {};\n}}\n",
      kernel_source("shared/formulas.h"), parameters, formals, print_statements(epilogue.expression, names, {}),
      result_name(epilogue.expression, 0));
  if (cut.threads == 1) {
    text.text += fmt::format("#define EPILOGUE(value, image, i) batch_norm_epilogue({})\n", actuals);
    return text;
  }
  text.text += fmt::format("#define EPILOGUE_OPERANDS{}\n#define EPILOGUE_READ(k, image, i){}\n", declarations, reads);
  if (cut.width == 1) {
    text.text += fmt::format("#define EPILOGUE(value, k) batch_norm_epilogue({})\n", actuals);
    return text;
  }
  text.text += "#define EPILOGUE(value, k) (float4)(";
  for (std::size_t j = 0; j < 4; ++j) {
    text.text += fmt::format("{}batch_norm_epilogue({})", j == 0 ? "" : ", ", components[j]);
  }
  text.text += ")\n";
  return text;
}

/// The two launches of a pass. Sizes, ε and, of the second, what the epilogue takes follow the operands.
PreparedKernel two_stages(Context& context, const KernelRequest& request, const Cut& cut, std::string_view name,
                          const std::string& first, std::vector<Argument> first_arguments, const std::string& second,
                          std::vector<Argument> second_arguments, float epsilon, const EpilogueText& epilogue = {}) {
  const PendingProgram plain = context.program(cut.file, cut.definitions);
  const PendingProgram program =
      epilogue.text.empty() ? plain : context.program_from(epilogue.text + kernel_source(cut.file), cut.definitions);
  first_arguments.insert(first_arguments.end(), cut.sizes.begin(), cut.sizes.end());
  second_arguments.insert(second_arguments.end(), cut.sizes.begin(), cut.sizes.end());
  first_arguments.emplace_back(epsilon);
  second_arguments.emplace_back(epsilon);
  std::vector<Argument> second_packed{PackedArguments{std::move(second_arguments)}};
  second_packed.insert(second_packed.end(), epilogue.arguments.begin(), epilogue.arguments.end());
  const std::array<std::size_t, 3> global{static_cast<std::size_t>(cut.channels) * cut.threads,
                                          static_cast<std::size_t>(cut.parts), 1};
  std::vector<StagedKernel::AnyStage> stages{
      Stage{plain, first, {PackedArguments{std::move(first_arguments)}}, global, {cut.threads, 1, 1}},
      Stage{program, second, std::move(second_packed), global, {cut.threads, 1, 1}}};
  return prepared(request,
                  std::make_unique<StagedKernel>(context, std::string(name), std::move(stages), cut.sums_bytes()));
}

PreparedKernel forward(Context& context, const ops::BatchNorm& op, const KernelRequest& request, const Cut& cut,
                       const EpilogueText& epilogue) {
  return two_stages(context, request, cut, op.name(), "batch_norm_statistics", {cut.images(input(0)), cut.sums()},
                    "batch_norm_forward",
                    {cut.images(input(0)), cut.sums(), input(1), input(2), cut.images(output(0)), output(1), output(2)},
                    op.epsilon(), epilogue);
}

PreparedKernel prepare_batch_norm(Context& context, const ops::BatchNorm& op, const KernelRequest& request) {
  if (auto kernel = prepare_batch_norm_channels_last(context, op, request)) return *std::move(kernel);
  return forward(context, op, request, cut_of(context, request.inputs[0].shape), {});
}

template <class Op>
bool batch_norm_supports_epilogue(const Op&, std::span<const TensorSpec>, const TensorSpec& output,
                                  const Expression& epilogue, std::span<const TensorSpec> extra) {
  if (epilogue.uses_coordinates() || epilogue.results().size() != 1 || output.dtype != DType::f32) return false;
  return std::ranges::all_of(extra,
                             [&](const TensorSpec& spec) { return epilogue_operand(spec, output.shape).has_value(); });
}

PreparedKernel prepare_fused_batch_norm(Context& context, const ops::BatchNorm& op, const KernelRequest& request,
                                        const Epilogue& epilogue) {
  if (auto kernel = prepare_batch_norm_channels_last(context, op, request, epilogue)) return *std::move(kernel);
  const Cut cut = cut_of(context, request.inputs[0].shape);
  return forward(context, op, request, cut, epilogue_text(epilogue, request, cut));
}

PreparedKernel backward(Context& context, const ops::BatchNormBackward& op, const KernelRequest& request,
                        const Cut& cut, const EpilogueText& epilogue) {
  return two_stages(context, request, cut, op.name(), "batch_norm_backward_sums",
                    {cut.images(input(0)), cut.images(input(1)), input(3), input(4), cut.sums()}, "batch_norm_backward",
                    {cut.images(input(0)), cut.images(input(1)), input(2), input(3), input(4), cut.sums(),
                     cut.images(output(0)), output(1), output(2)},
                    op.epsilon(), epilogue);
}

PreparedKernel prepare_batch_norm_backward(Context& context, const ops::BatchNormBackward& op,
                                           const KernelRequest& request) {
  if (auto kernel = prepare_batch_norm_backward_channels_last(context, op, request)) return *std::move(kernel);
  return backward(context, op, request, cut_of(context, request.inputs[0].shape), {});
}

PreparedKernel prepare_fused_batch_norm_backward(Context& context, const ops::BatchNormBackward& op,
                                                 const KernelRequest& request, const Epilogue& epilogue) {
  if (auto kernel = prepare_batch_norm_backward_channels_last(context, op, request, epilogue)) {
    return *std::move(kernel);
  }
  const Cut cut = cut_of(context, request.inputs[0].shape);
  return backward(context, op, request, cut, epilogue_text(epilogue, request, cut));
}

}  // namespace

void add_batch_norm(Kernels& kernels) {
  kernels.add<ops::BatchNorm, prepare_batch_norm>();
  kernels.add<ops::BatchNormBackward, prepare_batch_norm_backward>();
  kernels.add_fused<ops::BatchNorm, batch_norm_supports_epilogue, prepare_fused_batch_norm>();
  kernels.add_fused<ops::BatchNormBackward, batch_norm_supports_epilogue, prepare_fused_batch_norm_backward>();
}

}  // namespace concord::opencl
