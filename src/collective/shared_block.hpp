// SharedBlock: what the ranks of a SharedGroup have in common: who is here, how far each one is, room for data, and who
// is lost. Internal to the library.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "concord/collective/shared_memory.hpp"

namespace concord::collective {

/// A number that counts up, and wraps around.
using Counter = std::atomic<std::uint32_t>;
static_assert(Counter::is_always_lock_free && sizeof(Counter) == 4);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);  // of several processes

/// Wakes those that sleep on this counter.
void wake(Counter& counter);
/// Whether a counter that wraps around has come to `target`.
[[nodiscard]] inline bool has_reached(std::uint32_t counter, std::uint32_t target) {
  return static_cast<std::int32_t>(counter - target) >= 0;
}

class SharedBlock {
 public:
  /// Bytes of a rank in one turn, and of a piece on its way from one rank to another.
  static constexpr std::size_t kSlot = std::size_t{32} << 20, kPiece = std::size_t{4} << 20;
  /// The size of the block for so many ranks.
  [[nodiscard]] static std::size_t bytes(int size);

  /// Takes the seat of a rank. `memory` has bytes(size) bytes, zeros at the start.
  SharedBlock(std::shared_ptr<SharedMemory> memory, int rank, int size, std::chrono::duration<double> deadline);
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;
  /// Leaves the seat.
  ~SharedBlock();

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] std::chrono::duration<double> deadline() const { return deadline_; }

  /// The turns that a rank has written.
  [[nodiscard]] Counter& turn(int rank) const { return seat(rank).turn; }
  /// Each rank has two slots, for turns in alternation.
  [[nodiscard]] std::byte* slot(int rank, std::uint32_t turn) const;
  /// The pieces that went from one rank to another, and the room of a piece: two in alternation.
  [[nodiscard]] Counter& sent(int from, int to) const { return channel(from, to).sent; }
  [[nodiscard]] Counter& received(int from, int to) const { return channel(from, to).received; }
  [[nodiscard]] std::byte* piece(int from, int to, std::uint32_t number) const;

  /// Waits until `other` has brought this counter of its to `target`. Throws RankLost if it does not within the
  /// deadline, or if the group has ended.
  void wait_for(const Counter& counter, std::uint32_t target, int other) const;

  /// Throws RankLost if the group or another rank has ended, without waiting.
  void look_for_lost() const;

  /// The ranks that go on after one is lost.
  struct Survivors {
    std::shared_ptr<SharedMemory> memory;  // of their block; null for one rank
    int rank = 0, size = 1;                // this one's place among them
  };
  /// Each rank that goes on calls this. Waits for all that are not known to be lost, at most for the deadline. The
  /// block is of no other use after it. Throws RankLost if the others have gone on without this rank.
  [[nodiscard]] Survivors go_on() const;

 private:
  /// Why a group has ended.
  enum class Loss : std::uint32_t { ended, left, silent, given_up };
  struct alignas(64) Seat {
    Counter turn;
    std::atomic<pid_t> process;  // 0: not here yet
    std::atomic<std::uint32_t> left;
    std::atomic<std::uint32_t> goes_on;
    std::atomic<std::int32_t> place;  // among those that go on, from 1; 0: not among them
  };
  struct alignas(64) Channel {
    Counter sent, received;
  };
  struct alignas(64) Head {
    /// The first rank that is lost, from 1, and above 32 bits its Loss: one word, as a rank may end between two. It
    /// ends the group for all. 0: none.
    std::atomic<std::uint64_t> lost;
    std::atomic<std::uint32_t> deciding;  // 1: a rank decides who goes on
    Counter decided;                      // 1: it has
    std::int32_t survivors;               // how many
    std::array<char, 128> path;           // of their block
  };
  /// Where everything lies.
  struct Plan {
    explicit Plan(int size);
    std::size_t ranks, seats, channels, slots, pieces, end;
  };

  template <class T>
  [[nodiscard]] T* at(std::size_t place) const {
    return reinterpret_cast<T*>(memory_->bytes().data() + place);
  }
  [[nodiscard]] Head& head() const { return *at<Head>(0); }
  [[nodiscard]] Seat& seat(int rank) const { return at<Seat>(plan_.seats)[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::size_t pair(int from, int to) const {
    return static_cast<std::size_t>(from) * plan_.ranks + static_cast<std::size_t>(to);
  }
  [[nodiscard]] Channel& channel(int from, int to) const { return at<Channel>(plan_.channels)[pair(from, to)]; }

  [[nodiscard]] bool has_ended(int rank) const;
  /// -1: none.
  [[nodiscard]] int lost_rank() const { return static_cast<int>(static_cast<std::uint32_t>(head().lost.load())) - 1; }
  /// Throws if the group has ended or this rank has.
  void look_at(int other) const;
  [[noreturn]] void lose(int other, Loss loss) const;
  [[noreturn]] void report() const;
  /// Says who is lost, unless that is known.
  void mark_lost(int other, Loss loss) const;
  /// Whether every rank goes on or is known not to.
  [[nodiscard]] bool have_all_answered() const;
  /// Gives those that go on their places and a block. Returns that block; null for one rank.
  [[nodiscard]] std::shared_ptr<SharedMemory> decide() const;

  const int rank_, size_;
  const Plan plan_;
  const std::shared_ptr<SharedMemory> memory_;
  const std::chrono::duration<double> deadline_;
};

}  // namespace concord::collective
