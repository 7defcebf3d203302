// Normalisation of rows and its gradient on OpenCL devices: one kernel each.
#include "concord/ops/row_norm.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "concord/opencl/formula/kernels.hpp"
#include "concord/opencl/ops/lanes.hpp"

namespace concord::opencl {
namespace {

template <class Op>
PreparedKernel prepare_rows(Context& context, const Op& op, const KernelRequest& request, const std::string& function,
                            std::vector<Argument> arguments) {
  const ops::RowSizes sizes = ops::row_sizes(request.outputs[0].shape, op.axis());
  const Lanes lanes = lanes_for(context, sizes.length, 1);
  std::vector<std::string> definitions = lanes.definitions();
  if (op.centred()) definitions.emplace_back("CENTRED");
  arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(request.inputs.size() + request.outputs.size()),
                   {static_cast<std::uint64_t>(sizes.rows), static_cast<std::uint64_t>(sizes.length),
                    std::ldexp(1.0F, -static_cast<int>(std::bit_width(static_cast<std::uint64_t>(sizes.length))))});
  Stage stage{context.program("ops/row_norm.cl", definitions), function, std::move(arguments)};
  lanes.cover(stage, sizes.rows);
  return prepared(request, std::make_unique<StagedKernel>(context, std::string(op.name()),
                                                          std::vector<StagedKernel::AnyStage>{std::move(stage)}));
}

/// The greatest power of two whose square times epsilon is not above 1.
float most_unit(float epsilon) {
  constexpr int kMost = 126;
  return std::ldexp(1.0F, epsilon > 0 ? std::min(kMost, -std::ilogb(epsilon) / 2 - 1) : kMost);
}

PreparedKernel prepare_row_norm(Context& context, const ops::RowNorm& op, const KernelRequest& request) {
  std::vector<Argument> arguments{input(0), output(0), output(1)};
  if (op.centred()) arguments.emplace_back(output(2));
  arguments.emplace_back(op.epsilon());
  arguments.emplace_back(most_unit(op.epsilon()));
  return prepare_rows(context, op, request, "row_norm_forward", std::move(arguments));
}

PreparedKernel prepare_row_norm_backward(Context& context, const ops::RowNormBackward& op,
                                         const KernelRequest& request) {
  return prepare_rows(context, op, request, "row_norm_backward", {input(0), input(1), input(2), output(0)});
}

}  // namespace

void add_row_norm(Kernels& kernels) {
  kernels.add<ops::RowNorm, prepare_row_norm>();
  kernels.add<ops::RowNormBackward, prepare_row_norm_backward>();
}

}  // namespace concord::opencl
