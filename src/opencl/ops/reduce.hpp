// Reductions of contiguous rows by the kernels of Reduce. Used by global pooling.
#pragma once

#include <cstdint>
#include <string_view>

#include "concord/device/kernel.hpp"

namespace concord::opencl {

class Context;

/// request.inputs[0], `rows` rows of `length` values (2 at least) → their sums divided by `divisor`.
[[nodiscard]] PreparedKernel prepare_row_means(Context& context, std::string_view name, const KernelRequest& request,
                                               std::int64_t rows, std::int64_t length, float divisor);
/// request.inputs[0], `rows` rows of `length` values → the largest of each, and its place in its row (i32). The first
/// of equal values wins; a NaN wins over any number.
[[nodiscard]] PreparedKernel prepare_row_maxima(Context& context, std::string_view name, const KernelRequest& request,
                                                std::int64_t rows, std::int64_t length);

}  // namespace concord::opencl
