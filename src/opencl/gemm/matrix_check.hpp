// The check of a GEMM kernel on its device. Before an implementation uses matrix cores, they must multiply small
// integers correctly, which every precision computes exactly. Used by the implementations on matrix cores and by their
// tests.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "concord/opencl/gemm/problem.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// Integers from -3 to 3, times `unit`. `factor`, which must not be a multiple of 7, determines their order. Sums of
/// thousands of their products are exact in every precision.
[[nodiscard]] std::vector<float> whole_numbers(std::int64_t count, std::int64_t factor, float unit = 1);

/// A matrix multiplication with operands a and b as inputs 0 and 1 of these sizes.
struct CheckedProduct {
  Gemm gemm;
  std::int64_t a_elements, b_elements, c_elements;
};

/// A kernel for a matrix multiplication, or null where the implementation does not support it. `tile_number` counts the
/// problems, so that an implementation can use each of its tiles.
using CheckedPreparation =
    std::function<std::unique_ptr<Kernel>(Context& context, const Gemm& gemm, std::size_t tile_number)>;

/// Runs problems of every form (operands along k and across, sizes that fill tiles and sizes that do not, a split k,
/// and those of Context::products_to_check) and compares the results with the host's. `units` names the checked matrix
/// cores in the log. The function logs wrong results and failures.
[[nodiscard]] bool multiplies_right(Context& context, std::string_view units, Precision precision,
                                    const CheckedPreparation& prepare);

}  // namespace concord::opencl
