// Buffer: a block of device memory. Device::allocate makes it; its last owner frees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {

class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  virtual ~Buffer() = default;
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// A counter that grows with each change of the contents. Writes by the device count by themselves; code that binds a
  /// kernel's output calls `touch`.
  [[nodiscard]] std::uint64_t revision() const { return revision_; }
  void touch() { ++revision_; }

 private:
  std::size_t bytes_;
  std::uint64_t revision_ = 0;
};
using BufferPtr = std::shared_ptr<Buffer>;

}  // namespace concord
