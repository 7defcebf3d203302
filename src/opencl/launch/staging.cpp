// Pinned host memory and the transfer ring.
#include "concord/opencl/launch/staging.hpp"

#include <algorithm>
#include <cstring>

#include "concord/core/check.hpp"
#include "concord/opencl/driver/status.hpp"
#include "concord/opencl/launch/sizes.hpp"

namespace concord::opencl {
namespace {

constexpr std::size_t kRingBytes = std::size_t{8} << 20;
// Four pieces fill the ring: the host copies one while others are in transfer.
constexpr std::size_t kPieceBytes = kRingBytes / 4;

}  // namespace

StagingMemory::StagingMemory(Context& context, std::size_t bytes) : context_(context) {
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  cl_int status = CL_SUCCESS;
  memory_ = MemoryHandle(
      clCreateBuffer(context.context().get(), CL_MEM_ALLOC_HOST_PTR | CL_MEM_READ_WRITE, size, nullptr, &status));
  check_allocation(status, fmt::format("allocating {} bytes of pinned host memory", bytes), context.name());
  void* mapped = clEnqueueMapBuffer(context.transfer_queue().get(), memory_.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                    0, size, 0, nullptr, nullptr, &status);
  check_allocation(status, fmt::format("mapping {} bytes of pinned host memory", bytes), context.name());
  bytes_ = {static_cast<std::byte*>(mapped), bytes};
}

StagingMemory::~StagingMemory() {
  if (driver_is_gone()) return;
  clEnqueueUnmapMemObject(context_.transfer_queue().get(), memory_.get(), bytes_.data(), 0, nullptr, nullptr);
  context_.mark_end(context_.transfer_queue());
  clFinish(context_.transfer_queue().get());
}

void TransferRing::retire_oldest() {
  const cl_event done = pieces_.front().done.get();
  const cl_int status = clWaitForEvents(1, &done);
  pieces_.pop_front();
  check(status, "waiting for a transfer", context_.name());
}

std::span<std::byte> TransferRing::claim(std::size_t bytes) {
  if (!memory_) memory_ = std::make_unique<StagingMemory>(context_, kRingBytes);
  if (head_ + bytes > kRingBytes) head_ = 0;
  const std::size_t end = head_ + bytes;
  const auto in_the_way = [&](const Piece& piece) { return piece.begin < end && piece.end > head_; };
  while (std::ranges::any_of(pieces_, in_the_way)) retire_oldest();
  return memory_->bytes().subspan(head_, bytes);
}

void TransferRing::write(cl_mem dst, std::size_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), kPieceBytes);
    const std::span<std::byte> staged = claim(count);
    std::memcpy(staged.data(), bytes.data(), count);
    cl_event done = nullptr;
    check(clEnqueueWriteBuffer(context_.queue().get(), dst, CL_FALSE, offset, count, staged.data(), 0, nullptr, &done),
          "clEnqueueWriteBuffer", context_.name());
    if (timeline::recording()) log_.add(timeline::label("upload"), done, count);
    pieces_.push_back({head_, head_ + aligned(count), EventHandle(done)});
    head_ += aligned(count);
    offset += count;
    bytes = bytes.subspan(count);
  }
}

EventHandle TransferRing::write_directly(cl_mem dst, std::size_t offset, std::span<const std::byte> bytes) {
  cl_event done = nullptr;
  check(clEnqueueWriteBuffer(context_.queue().get(), dst, CL_FALSE, offset, bytes.size(), bytes.data(), 0, nullptr,
                             &done),
        "clEnqueueWriteBuffer", context_.name());
  if (timeline::recording()) log_.add(timeline::label("upload"), done, bytes.size());
  return EventHandle(done);
}

EventHandle TransferRing::read_directly(cl_mem src, std::size_t offset, std::span<std::byte> bytes, bool waits) {
  cl_event done = nullptr;
  check(clEnqueueReadBuffer(context_.queue().get(), src, waits ? CL_TRUE : CL_FALSE, offset, bytes.size(), bytes.data(),
                            0, nullptr, &done),
        "clEnqueueReadBuffer", context_.name());
  if (timeline::recording()) log_.add(timeline::label("download"), done, bytes.size());
  return EventHandle(done);
}

void TransferRing::read(cl_mem src, std::size_t offset, std::span<std::byte> bytes) {
  if (context_.limits().is_cpu && !bytes.empty()) return static_cast<void>(read_directly(src, offset, bytes, true));
  struct Arriving {
    std::span<const std::byte> staged;
    std::span<std::byte> target;
  };
  std::deque<Arriving> arriving;
  // Earlier pieces hold writes that the in-order queue finishes first; from here on the ring holds this read alone.
  while (!pieces_.empty()) retire_oldest();
  head_ = 0;
  const auto take_oldest = [&] {
    const Arriving oldest = arriving.front();
    arriving.pop_front();
    retire_oldest();
    std::memcpy(oldest.target.data(), oldest.staged.data(), oldest.target.size());
  };
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), kPieceBytes);
    if (arriving.size() == kRingBytes / kPieceBytes - 1) take_oldest();
    const std::span<std::byte> staged = claim(count);
    cl_event done = nullptr;
    check(clEnqueueReadBuffer(context_.queue().get(), src, CL_FALSE, offset, count, staged.data(), 0, nullptr, &done),
          "clEnqueueReadBuffer", context_.name());
    if (timeline::recording()) log_.add(timeline::label("download"), done, count);
    pieces_.push_back({head_, head_ + aligned(count), EventHandle(done)});
    head_ += aligned(count);
    arriving.push_back({staged, bytes.first(count)});
    offset += count;
    bytes = bytes.subspan(count);
  }
  while (!arriving.empty()) take_oldest();
}

}  // namespace concord::opencl
