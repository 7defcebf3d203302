// The device memory that a program will need, found without allocating it. Used for the message of an OutOfMemory, for
// the choice of a batch size, and for reports on a network.
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

/// The memory that compile() with these arguments would allocate. Throws OutOfMemory if a single value is larger than
/// one allocation of the device may be.
[[nodiscard]] MemoryNeed memory_need(const Graph& graph, std::span<const Value> outputs, const Variables& variables,
                                     MemoryDetail detail, const CompileOptions& options = {});

/// The largest batch below `failed` that needs at most `available` bytes; 0 if even one sample needs more. The need
/// grows with the batch. A `need` that throws OutOfMemory counts as more than `available`.
[[nodiscard]] std::int64_t largest_batch(std::int64_t failed, std::size_t available,
                                         const std::function<std::size_t(std::int64_t batch)>& need);

/// The bytes that a batch needs besides what the device has allocated now. The batch is not possible if this throws
/// OutOfMemory, NotSupported (more samples than kernels can number) or ShapeError (batch norm refuses a single sample).
using BatchNeed = std::function<std::size_t(std::int64_t batch, MemoryDetail detail)>;

/// Call this while handling an error of a program for `failed` samples. It throws the error again. OutOfMemory and
/// MemoryBudgetError get advice: "The largest batch that fits is 48", that not even one sample fits, or that other
/// programs hold the memory. NotSupported gets the largest possible batch, if there is one. Other errors do not change.
[[noreturn]] void rethrow_with_advice_on_batch(std::int64_t failed, const Device& device, const BatchNeed& need);

}  // namespace concord
