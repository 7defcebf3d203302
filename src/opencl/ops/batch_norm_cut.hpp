// How batch normalisation of row-major values on OpenCL devices is divided among work-items. Used by batch_norm.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "concord/core/shape.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/launch/stage.hpp"

namespace concord::opencl {

/// A group for each channel, in one launch; groups for parts of channels, in two; single items along planes, in two.
enum class BatchNormWay : std::uint8_t { whole, groups, runs };

/// The partition of a batch (N, C, plane) into parts of one channel, and the program for these parts.
struct BatchNormCut {
  BatchNormWay way;
  std::string file;
  std::vector<std::string> definitions;
  std::size_t threads, width;  // items a group; values of a plane that are read together
  std::int64_t channels, parts;
  std::vector<Argument> sizes;

  /// An image operand in the form that the kernels expect.
  [[nodiscard]] Argument images(BufferArgument operand) const {
    operand.element_size = width * sizeof(float);
    return operand;
  }
  /// The workspace holds vectors of four values per part: one for the forward pass, two for the gradient.
  static constexpr std::size_t kVector = 4 * sizeof(float);
  [[nodiscard]] static Argument sums() { return workspace(0, kVector); }
  [[nodiscard]] std::size_t sums_bytes() const { return static_cast<std::size_t>(channels * parts) * 2 * kVector; }
};

/// The way that CONCORD_DEBUG=batch_norm names for every device, if any: whole, groups or runs, or resident, which only
/// images channels-last have. Throws ArgumentError for another name.
[[nodiscard]] std::optional<std::string> forced_batch_norm();

/// Of a batch of this shape. `operands`: how many images the kernel reads, 1 forward and 2 backward.
[[nodiscard]] BatchNormCut batch_norm_cut(const Context& context, const Shape& src, std::int64_t operands);

}  // namespace concord::opencl
