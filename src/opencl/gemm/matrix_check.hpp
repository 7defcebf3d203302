// The check of a product kernel on the device it is to run on: before matrix cores are used, they have to get products
// of small whole numbers right, which every precision computes exactly. Used by the implementations on matrix cores and
// by their tests.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "concord/opencl/gemm/problem.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

/// From -3 to 3, times `unit`, in an order that goes by `factor`, no multiple of 7: sums of thousands of their products
/// are exact in every precision.
[[nodiscard]] std::vector<float> whole_numbers(std::int64_t count, std::int64_t factor, float unit = 1);

/// A product with operands a and b as inputs 0 and 1 of these sizes.
struct CheckedProduct {
  Gemm gemm;
  std::int64_t a_elements, b_elements, c_elements;
};

/// A kernel for a product, or nothing where the implementation does not accept it; `tile_number` counts the products,
/// for implementations that have several tiles to try.
using CheckedPreparation =
    std::function<std::unique_ptr<Kernel>(Context& context, const Gemm& gemm, std::size_t tile_number)>;

/// Runs products of every form — operands along k and across, sizes that fill tiles and that do not, a k to be cut, and
/// those of Context::products_to_check — and holds them against the host. `units` names what is checked in the log,
/// which is told when they are wrong or fail.
[[nodiscard]] bool multiplies_right(Context& context, std::string_view units, Precision precision,
                                    const CheckedPreparation& prepare);

}  // namespace concord::opencl
