// ElementKernel: a kernel whose work-items own elements of the result, with the blocking of formula/pointwise.cl. The
// items compute positions with the division of shared/index.h. Used by gather, gather_along and resample.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "concord/device/kernel.hpp"
#include "concord/opencl/launch/blocking.hpp"

namespace concord::opencl {

class ElementKernel {
 public:
  /// A kernel over `elements` elements; their number becomes the kernel's last argument.
  ElementKernel(Context& context, std::int64_t elements);

  /// "NAME=value", beside PER_ITEM and WIDE_INDEX.
  void define(std::string definition) { definitions_.push_back(std::move(definition)); }
  void add(Argument argument) { arguments_.push_back(std::move(argument)); }
  /// Adds an argument of type index_t.
  void add_index(std::int64_t value);
  /// Adds a divisor of type index_t, and the multiplier and shift that index_divide uses.
  void add_divisor(std::int64_t value);
  /// The function `stem` of cl_kernels/ops/stem.cl; reports call it `name`.
  [[nodiscard]] PreparedKernel prepare(const KernelRequest& request, const std::string& stem, const std::string& name);

 private:
  Context& context_;
  std::int64_t elements_;
  bool wide_;
  Blocking blocking_;
  std::vector<std::string> definitions_;
  std::vector<Argument> arguments_;
};

}  // namespace concord::opencl
