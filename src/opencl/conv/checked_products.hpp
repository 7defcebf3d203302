// The products of convolutions that matrix cores have to get right before they are used (gemm/matrix_check.hpp).
#pragma once

#include <vector>

#include "concord/opencl/gemm/matrix_check.hpp"

namespace concord::opencl {

/// The three passes of small convolutions, and a phase of a strided one's data gradient.
[[nodiscard]] std::vector<CheckedProduct> conv_products_to_check();

}  // namespace concord::opencl
