// Buffer: a piece of device memory. Made by Device::allocate, freed with its last owner.
#pragma once

#include <cstddef>
#include <memory>

namespace concord {

class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  virtual ~Buffer() = default;
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
};
using BufferPtr = std::shared_ptr<Buffer>;

}  // namespace concord
