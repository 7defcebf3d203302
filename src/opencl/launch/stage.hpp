// StagedKernel: the prepared form of every OpenCL operator, a list of kernel launches whose arguments are operands or
// numbers. `bind` waits for the programs and sets the arguments once; enqueueing only calls clEnqueueNDRangeKernel.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/device/kernel.hpp"
#include "concord/opencl/program/cache.hpp"

namespace concord::opencl {

class Context;
class OpenClBuffer;

/// A buffer argument. A kernel receives it as two parameters: `__global T* p, ulong p_offset`, the offset in elements
/// of `element_size` bytes.
struct BufferArgument {
  enum class Source : std::uint8_t { input, output, workspace } source;
  std::size_t index = 0;  // which input or output
  std::size_t element_size = 4;
  std::size_t extra_bytes = 0;  // added to the operand's offset (parts of the workspace)
  bool is_offset = false;       // the kernel receives no pointer: an argument before it has the same memory
};
[[nodiscard]] inline BufferArgument input(std::size_t index, std::size_t element_size = 4) {
  return {BufferArgument::Source::input, index, element_size, 0};
}
[[nodiscard]] inline BufferArgument output(std::size_t index, std::size_t element_size = 4) {
  return {BufferArgument::Source::output, index, element_size, 0};
}
[[nodiscard]] inline BufferArgument workspace(std::size_t extra_bytes = 0, std::size_t element_size = 4) {
  return {BufferArgument::Source::workspace, 0, element_size, extra_bytes};
}

/// Memory that a bound launch keeps from run to run, such as tables that only the device can fill; all arguments that
/// share `bytes` are places in the same memory. A kernel receives it as it does a BufferArgument. Each bound launch has
/// memory of its own, which Device::allocated counts.
struct KeptArgument {
  std::shared_ptr<const std::size_t> bytes;
  std::size_t element_size = 4;
  std::size_t offset = 0;  // in bytes
  bool is_offset = false;  // as of a BufferArgument
};
/// The start of new memory of `bytes` bytes.
[[nodiscard]] inline KeptArgument kept(std::size_t bytes, std::size_t element_size = 4) {
  return {std::make_shared<const std::size_t>(bytes), element_size, 0};
}
/// Another place in the same memory.
[[nodiscard]] inline KeptArgument further(KeptArgument argument, std::size_t bytes, std::size_t element_size = 4) {
  return {std::move(argument.bytes), element_size, argument.offset + bytes};
}

struct PackedArguments;

/// An operand, kept memory, a number, a table of the kernel's own (a plain `__global` pointer), or several of these.
using Argument = std::variant<BufferArgument, KeptArgument, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t,
                              float, std::shared_ptr<const OpenClBuffer>, PackedArguments>;

/// Arguments whose numbers are one argument, for kernels with many: a launch costs the host time for each argument of
/// the kernel, whatever its size. A kernel receives the memory of each buffer and table of the list, in order, as
/// `__global T* p`, and then a struct by value. Its members are the numbers and the offsets of buffers, in the order of
/// the list, each aligned to its own size, 4 or 8 bytes. The struct's size is a multiple of its largest member's
/// (cl_kernels/shared/numbers.h). The list is not empty, and has a number or a buffer. Packed arguments in the list of
/// others are a struct in theirs. A kernel of a program with one memory (PendingProgram::has_one_memory) receives only
/// the first memory, and all offsets, those of tables in bytes too, count from its start.
struct PackedArguments {
  std::vector<Argument> list;
};

/// Calls `visit` with every argument of `arguments` (a vector of Argument), and for packed ones with each of their
/// list.
template <class Arguments, class Visit>
void for_each_argument(Arguments& arguments, const Visit& visit) {
  for (auto& argument : arguments) {
    if (auto* const packed = std::get_if<PackedArguments>(&argument)) {
      for_each_argument(packed->list, visit);
    } else {
      visit(argument);
    }
  }
}

/// Makes arguments of a kernel those of a member of a group, whose inputs stand behind so many others.
inline void shift_inputs(std::vector<Argument>& arguments, std::size_t by) {
  for_each_argument(arguments, [by](Argument& one) {
    auto* const buffer = std::get_if<BufferArgument>(&one);
    if (buffer != nullptr && buffer->source == BufferArgument::Source::input) buffer->index += by;
  });
}

/// Makes arguments those of a further struct of a kernel, which has the memories of an earlier one, and no tables.
inline void make_offsets(PackedArguments& arguments) {
  for (Argument& one : arguments.list) {
    CONCORD_CHECK(!std::holds_alternative<std::shared_ptr<const OpenClBuffer>>(one), Error, "a table has no offset");
    if (auto* const buffer = std::get_if<BufferArgument>(&one)) buffer->is_offset = true;
    if (auto* const memory = std::get_if<KeptArgument>(&one)) memory->is_offset = true;
  }
}

/// One kernel launch. With local = {0, 0, 0} StagedKernel chooses the work-group, for kernels that do not depend on its
/// size; otherwise each global size is a multiple of its local size. A stage with a global size of 0 is skipped.
struct Stage {
  PendingProgram program;
  std::string function;
  std::vector<Argument> arguments;
  std::array<std::size_t, 3> global{1, 1, 1};
  std::array<std::size_t, 3> local{0, 0, 0};
  /// Runs when a bound launch is first enqueued, and after an enqueueing that failed. It writes only kept memory.
  bool once = false;
};

/// A library call (CLBlast) as a stage: run at enqueue with the bound operands. It enqueues on Context::queue() and may
/// pass Context::next_event() for timing.
struct LibraryStage {
  std::function<void(std::span<const Operand> inputs, std::span<const Operand> outputs, Operand workspace)> call;
};

class StagedKernel final : public Kernel {
 public:
  using AnyStage = std::variant<Stage, LibraryStage>;
  /// Throws DeviceError when a work-group exceeds the device's limit or does not divide the global size.
  StagedKernel(Context& context, std::string name, std::vector<AnyStage> stages, std::size_t workspace_bytes = 0);
  ~StagedKernel() override;
  [[nodiscard]] std::size_t workspace() const override { return workspace_; }
  [[nodiscard]] std::string name() const override { return name_; }
  /// For kernels that contain the stages of others.
  [[nodiscard]] const std::vector<AnyStage>& stages() const { return stages_; }
  [[nodiscard]] std::unique_ptr<Launch> bind(std::span<const Operand> inputs, std::span<const Operand> outputs,
                                             Operand workspace) const override;

 private:
  Context& context_;
  std::string name_;
  std::vector<AnyStage> stages_;
  std::size_t workspace_;
};

/// A PreparedKernel with every operand dense row-major.
[[nodiscard]] PreparedKernel prepared(const KernelRequest& request, std::unique_ptr<Kernel> kernel);

}  // namespace concord::opencl
