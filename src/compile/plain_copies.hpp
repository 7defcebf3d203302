// PlainCopies: copies values in a kernel's layout to plain numbers on the host and back.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "concord/compile/lowered.hpp"
#include "concord/device/device.hpp"
#include "concord/device/kernel.hpp"

namespace concord {

/// Each reorder is prepared once. Values pass through one buffer of the size of the largest, unless kernels write
/// directly to host memory.
class PlainCopies {
 public:
  /// The numbers of a value with a layout that lies at `from`, as Device::read_async gives them. Throws OutOfMemory.
  [[nodiscard]] EventPtr read(Device& device, const LoweredValue& value, const Operand& from, std::span<std::byte> to);
  /// As Device::write_deferred.
  void write(Device& device, const LoweredValue& value, std::span<const std::byte> from, const Operand& to);

 private:
  void grow(Device& device, BufferPtr& buffer, std::size_t bytes);
  void reorder(Device& device, const LoweredValue& value, const Operand& stored, const Operand& plain, bool to_plain);

  std::map<std::pair<const LoweredValue*, bool>, std::unique_ptr<Kernel>> reorders_;  // of a value, to plain numbers?
  BufferPtr plain_, workspace_;
};

}  // namespace concord
