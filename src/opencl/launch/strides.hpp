// Loops over several strided operands with as few dimensions as possible. Used by the pointwise and copy kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "concord/core/shape.hpp"
#include "concord/opencl/launch/stage.hpp"

namespace concord::opencl {

/// The loop has `dims` elements per dimension, outermost first. Element (i0, i1, …) of operand k lies at Σ i_d ·
/// strides[k][d].
struct StridedLoop {
  std::vector<std::int64_t> dims;
  std::vector<std::vector<std::int64_t>> strides;
  std::vector<std::size_t> axes;  // for each dimension, the one of the original loop that its innermost part was

  [[nodiscard]] std::int64_t elements() const;
  /// Whether an index or an element's place passes 2^31.
  [[nodiscard]] bool is_wide() const;
};

/// Row-major strides of `operand` broadcast to `dst` (right-aligned); 0 along broadcast dimensions.
[[nodiscard]] std::vector<std::int64_t> broadcast_strides(const Shape& operand, const Shape& dst);

/// The same loop without dimensions of one element, and with adjacent dimensions merged where every operand allows it,
/// except those in `kept` (axes of the original loop). Fills in `axes`.
[[nodiscard]] StridedLoop collapsed(StridedLoop loop, std::span<const std::size_t> kept = {});

/// Whether indices up to `elements` need index_t to have 64 bits (WIDE_INDEX).
[[nodiscard]] bool is_wide_index(std::int64_t elements);
/// A kernel argument of type index_t.
[[nodiscard]] Argument index_argument(std::int64_t value, bool wide);

/// The values that index.h needs for a divisor below 2^31; zeros for divisor 0, which kernels do not divide by.
struct FastDivisor {
  std::uint32_t divisor, multiplier, shift;
};
[[nodiscard]] FastDivisor fast_divisor(std::int64_t divisor);
/// Adds its three values, in the order of DIVISOR in index.h.
void add_divisor(std::vector<Argument>& arguments, std::int64_t divisor);

/// Kernel text that splits the index `i` of type index_t into the coordinates c0, c1, … of a loop, and computes the
/// positions in operands. Sizes and strides are kernel parameters, so that loops of one kind share a program.
class IndexText {
 public:
  /// `wide`: index_t has 64 bits; at least where loop.is_wide().
  IndexText(const StridedLoop& loop, bool wide);
  /// ", const index_t d1, const uint m1, …": for the end of a parameter list; their names; their values.
  [[nodiscard]] const std::string& parameters() const { return parameters_; }
  [[nodiscard]] const std::string& names() const { return names_; }
  [[nodiscard]] const std::vector<Argument>& arguments() const { return arguments_; }
  /// Statements that declare c0, c1, … from i.
  [[nodiscard]] const std::string& coordinates() const { return coordinates_; }
  /// The position of the element in operand k, an expression of c0, c1, …
  [[nodiscard]] const std::string& place(std::size_t k) const { return places_[k]; }
  /// The stride of operand k along the innermost dimension: "0", "1" or a parameter's name.
  [[nodiscard]] const std::string& step(std::size_t k) const { return steps_[k]; }
  /// Elements from i to the end of the innermost dimension, or to the index `end`, whichever is nearer.
  [[nodiscard]] std::string run_length() const;

 private:
  void add_parameter(const std::string& type, const std::string& name, Argument value);
  void add_index(const std::string& name, std::int64_t value);

  bool wide_;
  std::size_t rank_;
  std::string parameters_, names_, coordinates_;
  std::vector<Argument> arguments_;
  std::vector<std::string> places_, steps_;
};

/// Strides of `extra`, broadcast to `output`, along groups of output dimensions, each group as one index: group i is
/// the dimensions [ends[i-1], ends[i]). Nothing when a group has no single stride.
[[nodiscard]] std::optional<std::vector<std::int64_t>> grouped_strides(const Shape& extra, const Shape& output,
                                                                       std::span<const std::size_t> ends);

}  // namespace concord::opencl
