// Kernel: one operator prepared for one device, and Launch: a kernel bound to its operands. Programs are flat
// lists of launches; enqueueing one allocates nothing, builds no string and waits for nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/core/tensor.hpp"
#include "concord/device/buffer.hpp"
#include "concord/device/layout.hpp"

namespace CONCORD_PUBLIC concord {

class Operator;

/// Where an operand lies: a byte offset in a buffer.
struct Operand {
  Buffer* buffer = nullptr;
  std::size_t offset = 0;
};

/// A kernel with its operands, ready to run any number of times.
class Launch {
 public:
  virtual ~Launch() = default;
  /// Puts the work on the device's compute queue, in order after what was enqueued before.
  virtual void enqueue() = 0;
};

/// An operator prepared for given shapes, types and layouts on one device.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Scratch bytes that `bind` wants; their content does not persist between launches.
  [[nodiscard]] virtual std::size_t workspace() const { return 0; }
  /// The implementation, for traces: "conv_implicit_gemm 64x64", "oneDNN brgemm:avx512_core".
  [[nodiscard]] virtual std::string name() const = 0;
  /// Operands in the operator's order; `workspace` has at least workspace() bytes.
  [[nodiscard]] virtual std::unique_ptr<Launch> bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                                     Operand workspace) const = 0;
};

/// What a backend is asked to prepare.
struct KernelRequest {
  const Operator* op = nullptr;
  std::vector<TensorSpec> inputs;
  std::vector<Layout> input_layouts;  // as the producers left them
  std::vector<TensorSpec> outputs;
  Precision precision = Precision::fp32;
};

/// A backend's answer. Where input_layouts[i] differs from the offered one, compile inserts a reorder.
struct PreparedKernel {
  std::unique_ptr<Kernel> kernel;
  std::vector<Layout> input_layouts;
  std::vector<Layout> output_layouts;
};

}  // namespace concord
