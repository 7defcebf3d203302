// ProductTrial: runs one matrix multiplication on random operands, checks a kernel's result and measures its time. Used
// by the tuner.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "concord/opencl/gemm/problem.hpp"
#include "concord/opencl/launch/context.hpp"

namespace concord::opencl {

class ProductTrial {
 public:
  /// Allocates and fills the operands and computes the expected result with the plain kernel: every row, or, where that
  /// takes long, rows at equal distances that include the last. The plain kernel does not support channels-last images;
  /// for them the planned kernel computes the expected result. Throws OutOfMemory.
  ProductTrial(Device& device, Context& context, const Gemm& gemm);

  /// The problem with operands of its own: prepare kernels for `run` from it.
  [[nodiscard]] const Gemm& gemm() const { return gemm_; }
  /// Whether every row is checked.
  [[nodiscard]] bool is_whole() const { return row_step_ == 1; }

  struct Outcome {
    std::string fault;   // empty for a right result
    double seconds = 0;  // of the fastest of several runs; of the first where that takes longer than `worth`
  };
  [[nodiscard]] Outcome run(const Kernel& kernel, double worth);
  /// The time of `run`, without its check.
  [[nodiscard]] double seconds(const Kernel& kernel, double worth);

 private:
  [[nodiscard]] Operand workspace_of(std::size_t bytes);
  [[nodiscard]] std::unique_ptr<Launch> bind(const Kernel& kernel);
  [[nodiscard]] std::unique_ptr<Kernel> reference() const;
  /// Writes the result to the output; elements that the kernel does not write keep a marker.
  void run_once(const Kernel& kernel);
  /// Two values that `function` of gemm/compare.cl computes, starting from `found`.
  [[nodiscard]] std::array<std::uint32_t, 2> compared(const std::string& function, std::vector<Argument> arguments,
                                                      std::array<std::uint32_t, 2> found);
  [[nodiscard]] std::string fault();
  [[nodiscard]] std::string text_of(const Buffer& buffer, std::size_t place);
  [[nodiscard]] DType number() const;  // of the result
  [[nodiscard]] std::uint64_t numbers() const;

  Device& device_;
  Context& context_;
  Gemm gemm_;
  std::int64_t row_step_ = 1;
  std::vector<BufferPtr> inputs_;
  BufferPtr output_, expected_, workspace_;
  float tolerance_ = 0;
};

}  // namespace concord::opencl
