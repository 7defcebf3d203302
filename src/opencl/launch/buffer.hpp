// OpenClBuffer: device memory of this backend. Used by the device, by launches and by library calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "concord/device/buffer.hpp"
#include "concord/device/kernel.hpp"
#include "concord/opencl/driver/handle.hpp"

namespace concord::opencl {

/// Bytes in buffers of one device, and in the tables and kept memory of its kernels; outlives the device for buffers
/// freed after it, perhaps by another thread.
struct Accounting {
  std::atomic<std::size_t> now = 0, peak = 0;
};

class OpenClBuffer final : public Buffer {
 public:
  OpenClBuffer(MemoryHandle memory, std::size_t bytes, std::shared_ptr<Accounting> accounting)
      : Buffer(bytes), memory_(std::move(memory)), accounting_(std::move(accounting)) {
    const std::size_t now = accounting_->now += bytes;
    for (std::size_t peak = accounting_->peak; peak < now && !accounting_->peak.compare_exchange_weak(peak, now);) {
    }
  }
  ~OpenClBuffer() override { accounting_->now -= bytes(); }
  [[nodiscard]] cl_mem memory() const { return memory_.get(); }

 private:
  MemoryHandle memory_;
  std::shared_ptr<Accounting> accounting_;
};

/// The OpenCL object of a buffer of this backend; null for none (operands without elements).
[[nodiscard]] inline cl_mem memory_of(const Buffer* buffer) {
  return buffer == nullptr ? nullptr : static_cast<const OpenClBuffer*>(buffer)->memory();
}

}  // namespace concord::opencl
