// What the kernels of recurrent layers share. Used by recurrent.cpp and recurrent_persistent.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "concord/opencl/launch/stage.hpp"
#include "concord/ops/recurrent.hpp"

namespace concord::opencl {

/// The cell, and whether sequences have lengths, for cl_kernels/ops/recurrent_cell.h.
[[nodiscard]] std::vector<std::string> recurrent_definitions(const ops::RecurrentFamily& op,
                                                             const ops::RecurrentSizes& sizes);

/// Whether one launch should take all steps, on matrix cores that multiply in this precision.
[[nodiscard]] bool steps_are_persistent(Context& context, const ops::RecurrentSizes& sizes, Precision precision);
/// That launch. `operands`: the arguments before the kernel's own. Requires steps_are_persistent.
[[nodiscard]] std::unique_ptr<Kernel> prepare_persistent_steps(Context& context, const ops::RecurrentFamily& op,
                                                               const ops::RecurrentSizes& sizes, Precision precision,
                                                               std::vector<Argument> operands);

}  // namespace concord::opencl
