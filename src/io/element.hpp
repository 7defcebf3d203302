// The element types of files, by safetensors' names, and how their numbers become those of a variable. Internal to the
// rooms that read files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "concord/core/tensor.hpp"

namespace concord::io {

struct Element {
  const char* name;  // "BF16"
  std::uint64_t bytes;
  std::optional<DType> type;  // nothing: known to the format, not to tensors
};
/// Null for a name that the format does not know.
[[nodiscard]] const Element* find_element(std::string_view name);
[[nodiscard]] const Element& element_of(DType type);

/// The type that holds its numbers: its own, f32 for other floating point, u8 for BOOL, i32 for other integers.
[[nodiscard]] DType natural_type(const Element& element);

/// Whether numbers of this type may be taken for those of `to`: floating point for f32, whole numbers for i32, BOOL for
/// u8, and each for itself.
[[nodiscard]] bool is_convertible(const Element& from, DType to);

/// As above, for the tensor of this name: PyTorch's counter "num_batches_tracked" is a whole number, ours is f32.
[[nodiscard]] bool is_convertible(const Element& from, DType to, std::string_view tensor);

/// A number that `to` cannot hold.
struct Misfit {
  std::size_t index;
  std::string number;
};
/// Fills `to` with `numbers` in the host's byte order, rounded to nearest even; whole numbers have to be exact as i32.
/// Stops at the first that is outside the range of `to`'s type; infinities and NaN are in it. Only for what
/// is_convertible.
[[nodiscard]] std::optional<Misfit> convert(const Element& from, std::span<const std::byte> numbers, Tensor& to);

}  // namespace concord::io
