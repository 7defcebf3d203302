// What a program will take of its device's memory, found without allocating: for the message of an OutOfMemory, the
// choice of a batch size and reports on a network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "concord/compile/program.hpp"

namespace concord {

enum class MemoryDetail : std::uint8_t {
  values,   // of the graph's values alone: found at once
  kernels,  // with the layouts and workspaces of the kernels, which are prepared for it
};

struct MemoryNeed {
  std::size_t arena = 0;          // as Program::memory() will say
  std::size_t new_variables = 0;  // those that the device does not hold yet
  [[nodiscard]] std::size_t total() const { return arena + new_variables; }
};

/// What compile() with these arguments would allocate. Throws OutOfMemory when a single value is larger than one
/// allocation of the device may be.
[[nodiscard]] MemoryNeed memory_need(const Graph& graph, std::span<const Value> outputs, const Variables& variables,
                                     MemoryDetail detail, const CompileOptions& options = {});

/// The largest batch below `failed` whose need is at most `available` bytes; 0 when even one sample is too large. Needs
/// grow with the batch; a `need` that throws OutOfMemory counts as more than there is.
[[nodiscard]] std::int64_t largest_batch(std::int64_t failed, std::size_t available,
                                         const std::function<std::size_t(std::int64_t batch)>& need);

/// The bytes that a batch takes beside what the device has allocated now; where it throws OutOfMemory, NotSupported
/// (more samples than kernels can number) or ShapeError (batch norm refuses a single one) the batch is not possible.
using BatchNeed = std::function<std::size_t(std::int64_t batch, MemoryDetail detail)>;

/// To be called where an error of a program for `failed` samples is being handled. Throws it again: OutOfMemory and
/// MemoryBudgetError with what can be done ("The largest batch that fits is 48", that not even one does, or that others
/// hold the memory), NotSupported with the largest batch that is possible where one is, any other as it is.
[[noreturn]] void rethrow_with_advice_on_batch(std::int64_t failed, const Device& device, const BatchNeed& need);

}  // namespace concord
