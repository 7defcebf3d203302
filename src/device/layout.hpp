// Layout: how a tensor lies in device memory. Code above the backends only compares layouts. Null means dense
// row-major.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "concord/core/export.hpp"
#include "concord/core/tensor.hpp"

namespace CONCORD_PUBLIC concord {

class LayoutDescription;
using Layout = std::shared_ptr<const LayoutDescription>;

/// A memory layout of one tensor that a backend defines, for example nChw16c of oneDNN.
class LayoutDescription {
 public:
  virtual ~LayoutDescription() = default;
  [[nodiscard]] virtual std::size_t bytes() const = 0;
  [[nodiscard]] virtual bool equals(const LayoutDescription& other) const = 0;
  /// A name for traces: "nhwc", "nChw16c".
  [[nodiscard]] virtual std::string str() const = 0;
  /// The layout in which the same bytes are a tensor of another shape with the same elements, as `reshape` gives. Null
  /// where the bytes must be row-major first.
  [[nodiscard]] virtual Layout viewed_as(const TensorSpec& /*spec*/) const { return nullptr; }
  /// The layout in which the same bytes are the tensor `spec`, which has this one's axes in another order: its axis i
  /// is axis order[i] of this one. Null where they must be moved.
  [[nodiscard]] virtual Layout transposed(std::span<const std::size_t> /*order*/, const TensorSpec& /*spec*/) const {
    return nullptr;
  }
  /// The layout in which some of the same bytes are the tensor `spec`, whose element (0, …) is element `start` of this
  /// one; a slice of step 1. Null where they must be moved.
  [[nodiscard]] virtual Layout sliced(std::span<const std::int64_t> /*start*/, const TensorSpec& /*spec*/) const {
    return nullptr;
  }
  /// The type of the numbers, where the tensor is stored in row-major order in another type. The device then has
  /// pointwise groups with results of this type. Empty where the elements have another order.
  [[nodiscard]] virtual std::optional<DType> row_major_type() const { return {}; }
  /// Whether Device::prepare_reorders brings several row-major tensors into layouts of this kind at once.
  [[nodiscard]] virtual bool is_made_in_groups() const { return false; }
};

[[nodiscard]] inline bool same_layout(const Layout& a, const Layout& b) { return a == b || (a && b && a->equals(*b)); }

}  // namespace concord
