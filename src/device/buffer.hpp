// Buffer: a piece of device memory. Made by Device::allocate, freed with its last owner.
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
  /// Grows with every change of the contents: by the device's own writes, and by `touch` where a kernel writes.
  [[nodiscard]] std::uint64_t revision() const { return revision_; }
  void touch() { ++revision_; }

 private:
  std::size_t bytes_;
  std::uint64_t revision_ = 0;
};
using BufferPtr = std::shared_ptr<Buffer>;

}  // namespace concord
