// Batch normalisation with the statistics of the batch, and its gradient, on OpenCL devices: by work-groups in one
// launch (batch_norm_whole.cl) or two (batch_norm.cl), or on CPUs by single items that run along planes
// (batch_norm_contiguous.cl). batch_norm_cut.cpp chooses one of them.
#include <fmt/format.h>

#include <algorithm>

#include "concord/opencl/formula/epilogue.hpp"
#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/formula/printer.hpp"
#include "concord/opencl/launch/strides.hpp"
#include "concord/opencl/ops/batch_norm_cut.hpp"
#include "concord/opencl/ops/channels_last.hpp"
#include "concord/opencl/program/source.hpp"
#include "concord/ops/normalise.hpp"

namespace concord::opencl {
namespace {

/// Images that a pass reads.
constexpr std::int64_t kForwardImages = 1, kBackwardImages = 2;

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
EpilogueText epilogue_text(const Epilogue& epilogue, const KernelRequest& request, const BatchNormCut& cut) {
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
PreparedKernel two_stages(Context& context, const KernelRequest& request, const BatchNormCut& cut,
                          std::string_view name, const std::string& first, std::vector<Argument> first_arguments,
                          const std::string& second, std::vector<Argument> second_arguments, float epsilon,
                          const EpilogueText& epilogue = {}) {
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

/// The launch of a pass in which groups own channels; as above.
PreparedKernel one_stage(Context& context, const KernelRequest& request, const BatchNormCut& cut, std::string_view name,
                         const std::string& function, std::vector<Argument> operands, float epsilon,
                         const EpilogueText& epilogue) {
  operands.insert(operands.end(), cut.sizes.begin(), cut.sizes.end());
  operands.emplace_back(epsilon);
  std::vector<Argument> arguments{PackedArguments{std::move(operands)}};
  arguments.insert(arguments.end(), epilogue.arguments.begin(), epilogue.arguments.end());
  Stage stage{context.program_from(epilogue.text + kernel_source(cut.file), cut.definitions),
              function,
              std::move(arguments),
              {static_cast<std::size_t>(cut.channels) * cut.threads, 1, 1},
              {cut.threads, 1, 1}};
  return prepared(request, std::make_unique<StagedKernel>(context, fmt::format("{} whole", name),
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

PreparedKernel forward(Context& context, const ops::BatchNorm& op, const KernelRequest& request,
                       const BatchNormCut& cut, const EpilogueText& epilogue) {
  if (cut.way == BatchNormWay::whole) {
    return one_stage(context, request, cut, op.name(), "batch_norm_whole",
                     {cut.images(input(0)), input(1), input(2), cut.images(output(0)), output(1), output(2)},
                     op.epsilon(), epilogue);
  }
  return two_stages(context, request, cut, op.name(), "batch_norm_statistics", {cut.images(input(0)), cut.sums()},
                    "batch_norm_forward",
                    {cut.images(input(0)), cut.sums(), input(1), input(2), cut.images(output(0)), output(1), output(2)},
                    op.epsilon(), epilogue);
}

PreparedKernel prepare_batch_norm(Context& context, const ops::BatchNorm& op, const KernelRequest& request) {
  if (auto kernel = prepare_batch_norm_channels_last(context, op, request)) return *std::move(kernel);
  return forward(context, op, request, batch_norm_cut(context, request.inputs[0].shape, kForwardImages), {});
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
  const BatchNormCut cut = batch_norm_cut(context, request.inputs[0].shape, kForwardImages);
  return forward(context, op, request, cut, epilogue_text(epilogue, request, cut));
}

PreparedKernel backward(Context& context, const ops::BatchNormBackward& op, const KernelRequest& request,
                        const BatchNormCut& cut, const EpilogueText& epilogue) {
  if (cut.way == BatchNormWay::whole) {
    return one_stage(context, request, cut, op.name(), "batch_norm_whole_backward",
                     {cut.images(input(0)), cut.images(input(1)), input(2), input(3), input(4), cut.images(output(0)),
                      output(1), output(2)},
                     op.epsilon(), epilogue);
  }
  return two_stages(context, request, cut, op.name(), "batch_norm_backward_sums",
                    {cut.images(input(0)), cut.images(input(1)), input(3), input(4), cut.sums()}, "batch_norm_backward",
                    {cut.images(input(0)), cut.images(input(1)), input(2), input(3), input(4), cut.sums(),
                     cut.images(output(0)), output(1), output(2)},
                    op.epsilon(), epilogue);
}

PreparedKernel prepare_batch_norm_backward(Context& context, const ops::BatchNormBackward& op,
                                           const KernelRequest& request) {
  if (auto kernel = prepare_batch_norm_backward_channels_last(context, op, request)) return *std::move(kernel);
  return backward(context, op, request, batch_norm_cut(context, request.inputs[0].shape, kBackwardImages), {});
}

PreparedKernel prepare_fused_batch_norm_backward(Context& context, const ops::BatchNormBackward& op,
                                                 const KernelRequest& request, const Epilogue& epilogue) {
  if (auto kernel = prepare_batch_norm_backward_channels_last(context, op, request, epilogue)) {
    return *std::move(kernel);
  }
  const BatchNormCut cut = batch_norm_cut(context, request.inputs[0].shape, kBackwardImages);
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
