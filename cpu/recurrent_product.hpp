// The kernel of a recurrent layer: oneDNN products of each time step, each followed by work on the hidden units, by
// threads that keep their part of the units for all steps. Used by recurrent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels.hpp"

namespace concord::cpu {

/// The left operand of a product: an input, an output or the workspace, `element` floats into it. No step may write
/// what is the source of its own product.
struct RecurrentSource {
  enum class Place : std::uint8_t { input, output, workspace };
  Place place;
  std::size_t index;
  std::int64_t element;
};

/// Columns of the product: `columns` from `column` on, by the weights from element `weights` on. They lie together, row
/// after row, behind the pieces of the columns before them.
struct RecurrentPiece {
  std::int64_t column, weights, columns;
};

/// A thread's hidden units, begin … end, and the columns of the product they need.
struct RecurrentPart {
  std::int64_t begin, end;
  std::vector<RecurrentPiece> pieces;
};

/// Work on some units of the operands after product number k; the product stands at the begin of the workspace, what
/// the steps keep there behind it.
using RecurrentStepWork = std::function<void(const Pointers&, std::int64_t k, const RecurrentPart& part)>;

/// Products (rows, inner) × (inner, columns) of several sources with the same weights.
struct RecurrentProduct {
  std::int64_t rows, inner, columns;
  std::int64_t kept;    // floats of the workspace for the steps
  std::size_t weights;  // which input
  Dims strides;         // of the weights as (inner, columns)
  std::vector<RecurrentPart> parts;
  std::vector<std::optional<RecurrentSource>> sources;  // no product before the steps that have none
  Precision precision = Precision::fp32;                // with bf16 units and bf16, factors are rounded to it
  /// Whether a product is so large that rounding its factors pays.
  [[nodiscard]] bool is_worth_rounding() const {
    constexpr std::int64_t kLeastRows = 16, kLeastProducts = std::int64_t{1} << 20;
    return rows >= kLeastRows && rows * inner * columns >= kLeastProducts;
  }
};

/// A kernel that makes each product and takes the step after it. Throws dnnl::error.
[[nodiscard]] std::unique_ptr<Kernel> recurrent_kernel(std::string name, RecurrentProduct product,
                                                       RecurrentStepWork step);

}  // namespace concord::cpu
