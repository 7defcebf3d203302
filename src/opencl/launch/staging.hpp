// Pinned host memory and transfers through it: StagingMemory for users, TransferRing for writes and reads of pageable
// memory. Used by OpenClDevice.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>

#include "concord/device/device.hpp"
#include "concord/opencl/launch/context.hpp"
#include "concord/opencl/launch/event_log.hpp"

namespace concord::opencl {

/// Host memory from the driver (CL_MEM_ALLOC_HOST_PTR), mapped once for its whole life. Must not outlive the context.
class StagingMemory final : public Staging {
 public:
  /// Throws OutOfMemory.
  StagingMemory(Context& context, std::size_t bytes);
  ~StagingMemory() override;
  StagingMemory(const StagingMemory&) = delete;
  StagingMemory& operator=(const StagingMemory&) = delete;
  [[nodiscard]] std::span<std::byte> bytes() override { return bytes_; }

 private:
  Context& context_;
  MemoryHandle memory_;
  std::span<std::byte> bytes_;
};

/// Copies between pageable memory and device buffers through a ring of pinned memory, in order on the compute queue.
/// The pinned memory is allocated at first use.
class TransferRing {
 public:
  TransferRing(Context& context, EventLog& log) : context_(context), log_(log) {}
  /// The caller may reuse `bytes` after the return. Waits for earlier transfers only when the ring is full.
  void write(cl_mem dst, std::size_t offset, std::span<const std::byte> bytes);
  /// Waits for all earlier work on the queue.
  void read(cl_mem src, std::size_t offset, std::span<std::byte> bytes);

  // Transfers without pinned memory: a device that is the host's own processor copies just as fast. The queue reads and
  // writes `bytes` until the event is complete.
  [[nodiscard]] EventHandle write_directly(cl_mem dst, std::size_t offset, std::span<const std::byte> bytes);
  [[nodiscard]] EventHandle read_directly(cl_mem src, std::size_t offset, std::span<std::byte> bytes, bool waits);

 private:
  struct Piece {
    std::size_t begin, end;  // bytes of the ring in use until `done`
    EventHandle done;
  };
  /// Claims `bytes` of the ring that no transfer uses. Waits for the oldest transfers if necessary.
  [[nodiscard]] std::span<std::byte> claim(std::size_t bytes);
  void retire_oldest();

  Context& context_;
  EventLog& log_;  // of the compute queue's copies
  std::unique_ptr<StagingMemory> memory_;
  std::deque<Piece> pieces_;  // oldest first
  std::size_t head_ = 0;
};

}  // namespace concord::opencl
