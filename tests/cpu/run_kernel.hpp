// Runs one operator of the CPU backend with operands in chosen layouts. Used by the tests of the backend.
#pragma once

#include <string>
#include <vector>

#include "concord_test.hpp"

namespace concord::test {

/// What a kernel made of row-major inputs: its outputs, row-major again, and how it went about it.
struct KernelRun {
  std::vector<Tensor> outputs;
  std::string kernel;
  std::vector<std::string> output_layouts;  // "" is row-major
  int overwritten = -1;                     // the input that output 0 lay over
};

/// Inputs of 3 to 5 dimensions are offered channels-last when `last`, and f32 inputs of 2 dimensions and more in bf16
/// with that precision. `in_place`: output 0 lies over the input that the kernel names, if it names one.
[[nodiscard]] KernelRun run_kernel(const Operator& op, const std::vector<Tensor>& inputs, bool last,
                                   Precision precision = Precision::fp32, bool in_place = false);

/// N(0, 1), a function of shape and seed.
[[nodiscard]] Tensor normal_tensor(const Shape& shape, std::uint32_t seed);

[[nodiscard]] const DevicePtr& cpu_device();

}  // namespace concord::test
