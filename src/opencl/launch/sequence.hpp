// SequenceKernel: kernels that run one after the other as one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "concord/device/kernel.hpp"

namespace concord::opencl {

/// Inputs and outputs: those of the members, in order.
class SequenceKernel final : public Kernel {
 public:
  /// A kernel of one output.
  struct Member {
    std::unique_ptr<Kernel> kernel;
    std::size_t inputs;
  };
  explicit SequenceKernel(std::vector<Member> members) : members_(std::move(members)) {}
  [[nodiscard]] std::size_t workspace() const override;
  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::unique_ptr<Launch> bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                             Operand workspace) const override;

 private:
  std::vector<Member> members_;
};

}  // namespace concord::opencl
