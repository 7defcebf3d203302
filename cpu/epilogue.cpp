// Epilogues: matching an expression to oneDNN's post-operations, and the operators made with them.
#include "epilogue.hpp"

#include <algorithm>
#include <cmath>

#include "alternatives.hpp"
#include "bf16_simd.hpp"
#include "concord/core/check.hpp"
#include "concord/graph/expression.hpp"
#include "concord/ops/fused.hpp"
#include "kernels.hpp"
#include "onednn_faults.hpp"
#include "post_ops_check.hpp"
#include "tile.hpp"

namespace concord::cpu {
namespace {

using F = ScalarFunction;
using dnnl::algorithm;

// The other argument of a two-argument instruction, or -1 if neither argument or both are `value`.
std::int32_t other_argument(const Expression::Instruction& instruction, std::int32_t value) {
  const std::int32_t a = instruction.arguments[0], b = instruction.arguments[1];
  if ((a == value) == (b == value)) return -1;
  return a == value ? b : a;
}

// Adds a multiplication by `alpha` or an addition of `beta`. Returns false if the chain would get a second linear step:
// oneDNN 2.6's compiled kernels use the numbers of the last linear step for all of them, whatever is between. An
// addition after a multiplication joins its step. Two multiplications become one if the product of their numbers is a
// normal number.
bool append_linear(Epilogue& epilogue, float alpha, float beta) {
  const auto is_linear = [](const EpilogueStep& step) { return step.algorithm == algorithm::eltwise_linear; };
  if (std::ranges::none_of(epilogue.steps, is_linear)) {
    epilogue.steps.push_back({algorithm::eltwise_linear, -1, alpha, beta});
    return true;
  }
  EpilogueStep& last = epilogue.steps.back();
  if (!is_linear(last) || last.beta != 0) return false;
  if (!std::isnormal(last.alpha * alpha)) return false;
  last.alpha *= alpha;
  last.beta = beta;
  return true;
}

// Adds the step that turns `value` into `instruction`; false when there is none.
bool append_step(Epilogue& epilogue, std::span<const Expression::Instruction> code,
                 const Expression::Instruction& instruction, std::int32_t value, std::size_t base_inputs) {
  const std::int32_t number = other_argument(instruction, value);
  if (number < 0 || instruction.arguments[2] >= 0 || epilogue.relu) return false;
  const auto& other = code[static_cast<std::size_t>(number)];
  const bool value_first = instruction.arguments[0] == value;
  if (other.function == F::input) {
    if (other.index == 0) return false;  // the product itself, once more
    const int operand = static_cast<int>(base_inputs) + other.index - 1;
    switch (instruction.function) {
      case F::add: epilogue.steps.push_back({algorithm::binary_add, operand}); return true;
      case F::multiply: epilogue.steps.push_back({algorithm::binary_mul, operand}); return true;
      case F::subtract:
        if (!value_first) return false;
        epilogue.steps.push_back({algorithm::binary_sub, operand});
        return true;
      default: return false;
    }
  }
  if (other.function != F::constant) return false;
  switch (instruction.function) {
    case F::add: return append_linear(epilogue, 1.0F, other.value);
    case F::multiply: return append_linear(epilogue, other.value, 0.0F);
    case F::subtract: return value_first && append_linear(epilogue, 1.0F, -other.value);
    case F::maximum:
      if (other.value != 0) return false;
      epilogue.relu = true;
      return true;
    default: return false;
  }
}

std::optional<std::size_t> channel_axis_of(const Operator& op, const Shape& output) {
  if (dynamic_cast<const ops::Conv*>(&op) != nullptr) return 1;
  if (dynamic_cast<const ops::Matmul*>(&op) != nullptr) return output.rank() - 1;
  return {};
}

}  // namespace

PreparedKernel prepare_product(const Operator& op, const Epilogue& epilogue, const KernelRequest& request,
                               int threads) {
  const auto* matmul = dynamic_cast<const ops::Matmul*>(&op);
  if (matmul != nullptr && is_row_product(*matmul, request)) {
    return prepare_row_product(*matmul, epilogue, request, threads);
  }
  PreparedKernel prepared = matmul != nullptr
                                ? prepare_matmul_with(*matmul, epilogue, request)
                                : prepare_conv_with(dynamic_cast<const ops::Conv&>(op), epilogue, request);
  if (!epilogue.relu) return prepared;
  const std::int64_t elements = request.outputs[0].shape.elements();
  const bool is_narrow = stored_type(request.outputs[0], prepared.output_layouts[0]) == DType::bf16;
  Loop relu = [elements, threads, is_narrow](const Pointers& pointers) {
    parallel_parts(elements, threads, elements >= kParallelElements,
                   [&](std::int64_t, std::int64_t begin, std::int64_t end) {
                     if (is_narrow) return bf16_relu(pointers.output<Bf16>(0) + begin, end - begin);
                     const float zero = 0;
                     float* values = pointers.output<float>(0) + begin;
                     const TileOperand arguments[2] = {{values, false}, {&zero, true}};
                     tile_apply(F::maximum, arguments, values, end - begin);
                   });
  };
  prepared.kernel = followed_by(std::move(prepared.kernel), "relu", std::move(relu));
  return prepared;
}

std::optional<Epilogue> match_epilogue(const Expression& expression, std::size_t base_inputs, const Shape& output,
                                       std::size_t channel_axis, std::span<const TensorSpec> extra) {
  if (expression.results().size() != 1) return {};
  const auto is_per_channel = [&](const Shape& shape) {
    const std::size_t from_last = output.rank() - channel_axis;
    return shape.rank() >= from_last && shape.elements() == output.dims()[channel_axis] &&
           shape.dims()[shape.rank() - from_last] == output.dims()[channel_axis];
  };
  for (const TensorSpec& spec : extra) {
    if (spec.dtype != DType::f32 || !(spec.shape == output || is_per_channel(spec.shape))) return {};
  }
  const auto code = expression.code();
  Epilogue epilogue;
  std::int32_t value = -1;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i].function == F::constant || (code[i].function == F::input && code[i].index != 0)) continue;
    if (code[i].function == F::input) {
      value = static_cast<std::int32_t>(i);
    } else if (value < 0 || !append_step(epilogue, code, code[i], value, base_inputs)) {
      return {};
    } else {
      value = static_cast<std::int32_t>(i);
    }
  }
  if (value < 0 || expression.results()[0] != value) return {};
  if (!epilogue.steps.empty() && epilogue.steps[0].algorithm == algorithm::binary_add) {
    const auto operand = static_cast<std::size_t>(epilogue.steps[0].operand);
    if (is_per_channel(extra[operand - base_inputs].shape)) {
      epilogue.bias = epilogue.steps[0].operand;
      epilogue.steps.erase(epilogue.steps.begin());
    }
  }
  return epilogue;
}

dnnl::post_ops post_ops_of(const Epilogue& epilogue, const std::function<Desc(std::size_t)>& desc_of_operand,
                           std::vector<PrimitiveArgument>& arguments, int in_place) {
  dnnl::post_ops post_ops;
  for (const EpilogueStep& step : epilogue.steps) {
    if (step.operand >= 0 && step.operand == in_place) {
      post_ops.append_sum(1.0F);
      continue;
    }
    if (step.operand < 0) {
      append_eltwise(post_ops, step.algorithm, step.alpha, step.beta);
      continue;
    }
    const auto operand = static_cast<std::size_t>(step.operand);
    const Desc desc = desc_of_operand(operand);
    const int argument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(post_ops.len()) | DNNL_ARG_SRC_1;
    post_ops.append_binary(step.algorithm, desc);
    arguments.push_back(input_argument(argument, operand, desc));
  }
  return post_ops;
}

namespace {

PreparedKernel prepare_fused(Backend& backend, const ops::Fused& op, const KernelRequest& request) {
  const Shape& output = request.outputs[0].shape;
  const auto axis = channel_axis_of(*op.base(), output);
  CONCORD_CHECK(axis.has_value(), NotSupported, "{} has no epilogue on the CPU", op.base()->name());
  const auto epilogue = match_epilogue(op.epilogue(), op.base_inputs(), output, *axis,
                                       std::span(request.inputs).subspan(op.base_inputs()));
  CONCORD_CHECK(epilogue.has_value(), NotSupported, "{}: no epilogue {} on the CPU", op.name(), op.epilogue().str());
  // A checked chain is exact. If a chain is wrong only with rounded factors, it is computed without them, because the
  // precision is only a permission.
  KernelRequest own = request;
  if (own.precision != Precision::fp32 && !is_right(*op.base(), *epilogue, own)) own.precision = Precision::fp32;
  return prepare_product(*op.base(), *epilogue, own, backend.threads);
}

}  // namespace

bool supports_fused(CpuAlternatives& alternatives, const Operator& op, std::span<const TensorSpec> op_inputs,
                    const TensorSpec& output, const Expression& epilogue, std::span<const TensorSpec> extra) {
  const auto axis = channel_axis_of(op, output.shape);
  if (!axis || output.dtype != DType::f32) return false;
  const auto matched = match_epilogue(epilogue, op_inputs.size(), output.shape, *axis, extra);
  if (!matched) return false;
  const bool is_matmul = dynamic_cast<const ops::Matmul*>(&op) != nullptr;
  if (!matched->steps.empty() &&
      !alternatives.should_use_post_ops(is_matmul ? Product::matmul : Product::convolution)) {
    return false;
  }
  KernelRequest request{
      .op = &op, .inputs = {op_inputs.begin(), op_inputs.end()}, .input_layouts = {}, .outputs = {output}};
  request.inputs.insert(request.inputs.end(), extra.begin(), extra.end());
  request.input_layouts.resize(request.inputs.size());
  try {
    // oneDNN's reference implementations are far slower than a separate pass of our own.
    return !is_reference(*prepare_product(op, *matched, request, 1).kernel) && is_right(op, *matched, request);
  } catch (const NotSupported&) {
    return false;
  }
}

void add_fused(Kernels& kernels) { kernels.add<ops::Fused, by_onednn<ops::Fused, prepare_fused>>(); }

}  // namespace concord::cpu
