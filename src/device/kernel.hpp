// Kernel: one operator prepared for one device. Launch: a kernel bound to its operands. A program is a flat list of
// launches. Enqueueing a launch allocates nothing, builds no string and waits for nothing.
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

/// The place of an operand: a buffer and a byte offset in it.
struct Operand {
  Buffer* buffer = nullptr;
  std::size_t offset = 0;
};

/// A kernel with its operands, ready to run any number of times.
class Launch {
 public:
  virtual ~Launch() = default;
  /// Puts the work on the compute queue of the device, after all work enqueued before.
  virtual void enqueue() = 0;
};

/// An operator prepared for given shapes, types and layouts on one device.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// The size in bytes of the workspace for `bind`. A workspace keeps nothing between launches.
  [[nodiscard]] virtual std::size_t workspace() const { return 0; }
  /// The name of the implementation, for traces: "conv_implicit_gemm 64x64", "oneDNN brgemm:avx512_core".
  [[nodiscard]] virtual std::string name() const = 0;
  /// Binds operands, in the order of the operator. `workspace` has at least workspace() bytes.
  [[nodiscard]] virtual std::unique_ptr<Launch> bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                                     Operand workspace) const = 0;
};

/// A request to a backend for a kernel.
struct KernelRequest {
  const Operator* op = nullptr;
  std::vector<TensorSpec> inputs;
  std::vector<Layout> input_layouts;  // the layouts that the producers write
  std::vector<TensorSpec> outputs;
  Precision precision = Precision::fp32;
  /// The result is a new value of a variable, or on the way to one: it must not be rounded to 16 bits.
  bool is_exact = false;
};

/// The answer of a backend. If input_layouts[i] differs from the layout in the request, compile inserts a reorder.
struct PreparedKernel {
  std::unique_ptr<Kernel> kernel;
  std::vector<Layout> input_layouts;
  std::vector<Layout> output_layouts;
  /// The index of an input that output 0 may overwrite, which saves the kernel a copy; -1: none. Both have the same
  /// shape, type and layout.
  int overwrites = -1;
};

/// Of operators that one launch computes (Device::prepare_group).
struct GroupKind {
  std::string name;             // the same for all that go together
  std::string label;            // what they are, for the names of groups: "reduce_sum"
  std::size_t awaited = 0;      // no more join those that read more than so many bytes
  std::size_t most = SIZE_MAX;  // members
  bool keeps_bits = true;       // results have the bits of those of single kernels
  Layout result = nullptr;      // of the result of each
};

}  // namespace concord
