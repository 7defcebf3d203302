// PeerMemory: memory of one device that the devices of other processes read and write directly, and sums over it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/device/buffer.hpp"

namespace CONCORD_PUBLIC concord {

class Event;
using EventPtr = std::shared_ptr<Event>;

/// Memory of one rank of a training, connected with that of the other ranks on the same machine. Each rank has the same
/// number of bytes. Device::allocate_peer makes it.
class PeerMemory {
 public:
  PeerMemory() = default;
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;
  virtual ~PeerMemory() = default;

  /// The memory as a buffer of its device.
  [[nodiscard]] virtual const BufferPtr& buffer() const = 0;
  /// A file descriptor by which other processes connect. This object closes it.
  [[nodiscard]] virtual int file() const = 0;
  /// Connects with the memory of all ranks: their descriptors, of which the own one is not used and -1. Closes them.
  /// Throws DeviceError if the driver does not take one.
  virtual void connect(std::vector<int> files, int rank) = 0;
  /// Enqueues the sum over all ranks of the floats [first, first + count) of the memory, into the memory of all ranks:
  /// ((start + v₀) + v₁) + … in fp32. `first` and `count` are multiples of 4. The first `started` sums, a multiple of
  /// 4, start from the floats in `start`, the others from 0; `start` may be null if `started` is 0. The sum runs after
  /// `after`, beside the compute queue, which waits for the returned event if told so (Device::wait_for). All ranks
  /// enqueue the same sums in the same order, and each waits on the device for the others. If one does not come within
  /// the deadline, the result of this and of all later sums is NaN.
  [[nodiscard]] virtual EventPtr sum(std::size_t first, std::size_t count, const Buffer* start, std::size_t started,
                                     const EventPtr& after) = 0;
  /// Lets sums that wait for another rank end now, as after the deadline: this one's results are NaN from here on.
  virtual void give_up() = 0;
  /// Waits for the sums. Returns the rank that did not come, or -1.
  [[nodiscard]] virtual int lost_rank() = 0;
};

}  // namespace concord
