// OpenClBuffer: device memory of this backend. Used by the device, by launches and by library calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "concord/device/buffer.hpp"
#include "concord/device/kernel.hpp"
#include "concord/opencl/driver/handle.hpp"
#include "concord/opencl/launch/addresses.hpp"

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
  ~OpenClBuffer() override {
    accounting_->now -= bytes();
    if (addresses_) addresses_->keep_until_idle(memory());
  }
  [[nodiscard]] cl_mem memory() const { return memory_.get(); }
  /// In the device's memory, asked for at the first call. From then on the memory is kept for launches that find it so.
  [[nodiscard]] std::uint64_t address(const std::shared_ptr<Addresses>& addresses) const {
    if (!addresses_) {
      address_ = addresses->of(memory());
      addresses_ = addresses;
    }
    return address_;
  }

 private:
  MemoryHandle memory_;
  std::shared_ptr<Accounting> accounting_;
  mutable std::shared_ptr<Addresses> addresses_;
  mutable std::uint64_t address_ = 0;
};

/// The OpenCL object of a buffer of this backend; null for none (operands without elements).
[[nodiscard]] inline cl_mem memory_of(const Buffer* buffer) {
  return buffer == nullptr ? nullptr : static_cast<const OpenClBuffer*>(buffer)->memory();
}

}  // namespace concord::opencl
