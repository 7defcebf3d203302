// Group: the ranks of a training on several devices, and the operations by which they exchange data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "concord/core/export.hpp"
#include "concord/core/types.hpp"

namespace CONCORD_PUBLIC concord {
namespace collective {

/// The range of a vector that one rank works on: elements [begin, end).
struct Part {
  std::size_t begin = 0, end = 0;
  [[nodiscard]] std::size_t size() const { return end - begin; }
  friend bool operator==(const Part&, const Part&) = default;
};
/// Divides `elements` evenly; the last parts may be shorter or empty.
[[nodiscard]] Part part_of(std::size_t elements, int size, int rank);

/// The ranks 0 … size - 1 of one training. A rank is a process with one device; in tests, a thread. All ranks call the
/// same operations in the same order, with spans of the same size. An operation returns when its result is there. It
/// throws RankLost if another rank does not take part within the deadline. One thread at a time may use a group.
class Group {
 public:
  Group(int rank, int size) : rank_(rank), size_(size) {}
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  virtual ~Group() = default;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  /// The name of the transport: "host" or "gloo".
  [[nodiscard]] virtual std::string transport() const = 0;

  /// Replaces this rank's part of `values` (part_of) by the sum over all ranks. The other elements are unspecified.
  /// Every transport adds in the order of the ranks, in fp32: ((start + v₀) + v₁) + …. So all transports have the same
  /// bits. `start` is empty (0), or has the size of `values` and is the same on all ranks.
  virtual void reduce_scatter(std::span<float> values, std::span<const float> start) = 0;
  /// Sends this rank's part of `values` to all ranks and receives theirs. Parts are counted in elements of `element`
  /// bytes, of which `values` has a whole number.
  virtual void all_gather(std::span<std::byte> values, std::size_t element) = 0;
  /// Copies `bytes` of the rank `root` to all ranks.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  /// Sends to one rank, which calls `receive` with the same size. May return before the other rank has it.
  virtual void send(std::span<const std::byte> bytes, int to) = 0;
  virtual void receive(std::span<std::byte> bytes, int from) = 0;
  /// Waits until all ranks have called it.
  virtual void barrier() = 0;

  /// Throws RankLost if another rank is known to be lost. Does not wait; transports that learn of a lost rank only in
  /// an operation do nothing.
  virtual void look_for_lost() {}

  /// A second group of the same ranks, whose operations have an order of their own, so that another thread may use it.
  /// All ranks call it.
  [[nodiscard]] virtual std::shared_ptr<Group> duplicate() = 0;

  /// The ranks that still take part, after an operation of one of them threw RankLost: a new group, in the same order;
  /// null for a rank that is left alone. Each of them calls it, and waits for those that are not known to be lost, at
  /// most for the deadline. No other operation of this group may follow. Throws RankLost on a rank that the others have
  /// gone on without, and NotSupported by a transport that cannot go on.
  [[nodiscard]] virtual std::shared_ptr<Group> survivors();
  /// Whether the transport can go on.
  [[nodiscard]] virtual bool has_survivors() const { return false; }

  /// Replaces `values` by the sum over all ranks, in the order of reduce_scatter.
  virtual void all_reduce(std::span<float> values, std::span<const float> start = {});
  /// As all_reduce of the values rounded to `precision`, bf16 or fp16, with the sums rounded to it too. Between
  /// machines half as many bytes travel. In fp16 all values are multiplied by a power of two before, and their sums
  /// divided by it after: the ranks choose it such that the largest finite magnitude of all and its sum stay below
  /// fp16's limit. NaN and infinities stay. Throws NotSupported for another precision.
  void all_reduce_rounded(std::span<float> values, Precision precision);

 protected:
  /// As all_reduce of values[i] · scale, rounded, with the rounded sums divided by `scale`, a power of two.
  virtual void sum_rounded(std::span<float> values, Precision precision, float scale);

 private:
  int rank_, size_;
};
using GroupPtr = std::shared_ptr<Group>;

/// The group that this process was started in: by `concord launch`, torchrun, mpirun or srun. Null if it
/// was started alone. The first call waits for the other processes. Throws RankLost if they do not come within the
/// deadline, ArgumentError for contradictory environment variables, and NotSupported if no transport reaches all ranks.
[[nodiscard]] GroupPtr group_of_process();

/// As group->survivors(). If `group` is that of this process, the survivors are it from now on, and `concord launch`
/// learns who they are.
[[nodiscard]] GroupPtr survivors_of(const GroupPtr& group);

/// The number of ranks with which a training goes on when others are lost: $CONCORD_MIN_RANKS, else 0: with all only.
/// Throws ArgumentError for a value that is not a whole number above 0.
[[nodiscard]] int least_ranks();

/// The deadline of joining and of each operation in seconds, in which the waiting process runs: $CONCORD_DEADLINE, else
/// 300. Throws ArgumentError for a value that is not a number above 0.
[[nodiscard]] double deadline_seconds();

}  // namespace collective
}  // namespace concord
