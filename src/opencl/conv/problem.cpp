// A pass of a convolution: which tensor is which, and how its epilogue reads its operands.
#include "concord/opencl/conv/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "concord/opencl/launch/strides.hpp"

namespace concord::opencl {
namespace {

/// The groups of dimensions of an image (N, C, …) that an epilogue's operand is read along.
std::array<std::size_t, 3> groups_of(const TensorSpec& image) { return {1, 2, image.shape.rank()}; }

/// `operand_of` (input, type, strides along images, channels and pixels) says how an operand is read.
template <class OperandOf>
EpilogueText epilogue_text(const ConvProblem& problem, const OperandOf& operand_of) {
  if (problem.epilogue == nullptr) return {};
  const KernelRequest& request = problem.request;
  const TensorSpec& output = request.outputs[0];
  std::vector<EpilogueOperand> operands;
  for (std::size_t i = problem.epilogue->first_extra; i < request.inputs.size(); ++i) {
    const TensorSpec& input = request.inputs[i];
    operands.push_back(
        operand_of(i, input.dtype, grouped_strides(input.shape, output.shape, groups_of(output)).value()));
  }
  return gemm_epilogue(problem.epilogue->expression, operands);
}

}  // namespace

const TensorSpec& ConvProblem::src() const {
  return pass == ConvPass::backward_data ? request.outputs[0] : request.inputs[0];
}
const TensorSpec& ConvProblem::weights() const {
  return pass == ConvPass::backward_weights ? request.outputs[0] : request.inputs[1];
}
const TensorSpec& ConvProblem::dst() const {
  if (pass == ConvPass::forward) return request.outputs[0];
  return request.inputs[pass == ConvPass::backward_data ? 0 : 1];
}

std::string ConvProblem::str() const {
  return fmt::format("{} {} * {} {} in {}", label, src().shape.str(), weights().shape.str(), sizes.options.str(),
                     name_of(request.precision));
}

bool conv_supports_epilogue(const TensorSpec& output, const Expression& epilogue, std::span<const TensorSpec> extra) {
  if (epilogue.uses_coordinates() || epilogue.results().size() != 1 || output.dtype != DType::f32) return false;
  return std::all_of(extra.begin(), extra.end(), [&](const TensorSpec& spec) {
    return grouped_strides(spec.shape, output.shape, groups_of(output)).has_value();
  });
}

EpilogueText conv_epilogue(const ConvProblem& problem) {
  const ops::ConvSizes& s = problem.sizes;
  const std::int64_t channels = problem.pass == ConvPass::forward ? s.group_o() : s.group_c();
  return epilogue_text(problem, [&](std::size_t i, DType type, const std::vector<std::int64_t>& strides) {
    return EpilogueOperand{i, type, channels * strides[1], strides[1], strides[0], strides[2]};
  });
}

EpilogueText conv_epilogue_by_images(const ConvProblem& problem) {
  return epilogue_text(problem, [](std::size_t i, DType type, const std::vector<std::int64_t>& strides) {
    return EpilogueOperand{i, type, 0, strides[0], 0, strides[1]};
  });
}

EpilogueText conv_epilogue_by_pixels(const ConvProblem& problem) {
  return epilogue_text(problem, [](std::size_t i, DType type, const std::vector<std::int64_t>& strides) {
    return EpilogueOperand{i, type, strides[0], strides[2], strides[1], 0};
  });
}

}  // namespace concord::opencl
