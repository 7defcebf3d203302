// A rank fills its two slots of the block in alternating turns. A rank that has written turn t + 1 knows that all ranks
// have read its slot of turn t - 1, because they read before they go on.
#include "concord/collective/shared_group.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "concord/collective/rounding.hpp"
#include "concord/collective/shared_block.hpp"
#include "concord/core/check.hpp"
#include "concord/core/team.hpp"
#include "concord/core/threads.hpp"

namespace concord::collective {
namespace {

constexpr int kMostThreads = 16;  // of a rank, on hosts with very many processors

class SharedGroup final : public Group {
 public:
  SharedGroup(std::shared_ptr<SharedMemory> memory, int rank, int size, std::chrono::duration<double> deadline)
      : Group(rank, size),
        block_(std::move(memory), rank, size, deadline),
        team_(std::min(num_threads() / size, kMostThreads)) {}

  [[nodiscard]] std::string transport() const override { return "host"; }

  void reduce_scatter(std::span<float> values, std::span<const float> start) override {
    CONCORD_CHECK(start.empty() || start.size() == values.size(), ArgumentError,
                  "a sum of {} numbers cannot start from {}", values.size(), start.size());
    const std::size_t each = part_of(values.size(), size(), 0).size();
    const std::size_t segment = kSlot / static_cast<std::size_t>(size()) / sizeof(float);
    for (std::size_t done = 0; done < each; done += segment) {
      const auto piece = [&](int of) {
        const Part part = part_of(values.size(), size(), of);
        return Part{std::min(part.begin + done, part.end), std::min(part.begin + done + segment, part.end)};
      };
      for (int to = 0; to < size(); ++to) {
        const Part part = piece(to);
        copy(std::as_bytes(values.subspan(part.begin, part.size())),
             block_.slot(rank(), turn_ + 1) + static_cast<std::size_t>(to) * segment * sizeof(float));
      }
      take_turn();
      const Part part = piece(rank());
      float* const sums = values.data() + part.begin;
      team_.for_pieces(part.size(), kLeast / sizeof(float), [&](std::size_t first, std::size_t count) {
        if (start.empty()) {
          std::fill_n(sums + first, count, 0.0F);
        } else {
          std::copy_n(start.data() + part.begin + first, count, sums + first);
        }
        for (int from = 0; from < size(); ++from) {
          const auto* const terms =
              reinterpret_cast<const float*>(block_.slot(from, turn_)) + static_cast<std::size_t>(rank()) * segment;
          add_run(terms + first, sums + first, count);
        }
      });
    }
  }

  void all_gather(std::span<std::byte> values, std::size_t element) override {
    CONCORD_CHECK(element > 0 && values.size() % element == 0, ArgumentError,
                  "{} bytes are no whole number of elements of {} bytes", values.size(), element);
    const auto part = [&](int of) {
      const Part elements = part_of(values.size() / element, size(), of);
      return values.subspan(elements.begin * element, elements.size() * element);
    };
    const std::size_t each = part(0).size();
    for (std::size_t done = 0; done < each; done += kSlot) {
      const auto piece = [&](int of) {
        const std::span<std::byte> whole = part(of);
        const std::size_t begin = std::min(done, whole.size());
        return whole.subspan(begin, std::min(kSlot, whole.size() - begin));
      };
      copy(piece(rank()), block_.slot(rank(), turn_ + 1));
      take_turn();
      for (int from = 0; from < size(); ++from) {
        if (from != rank()) copy(std::span(block_.slot(from, turn_), piece(from).size()), piece(from).data());
      }
    }
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    for (std::size_t done = 0; done < bytes.size(); done += kSlot) {
      const std::span<std::byte> piece = bytes.subspan(done, std::min(kSlot, bytes.size() - done));
      if (rank() == root) copy(piece, block_.slot(root, turn_ + 1));
      take_turn();
      if (rank() != root) copy(std::span(block_.slot(root, turn_), piece.size()), piece.data());
    }
  }

  void send(std::span<const std::byte> bytes, int to) override {
    Counter& sent = block_.sent(rank(), to);
    for (std::size_t done = 0; done < bytes.size(); done += kPiece) {
      const std::span<const std::byte> piece = bytes.subspan(done, std::min(kPiece, bytes.size() - done));
      const std::uint32_t number = sent.load(std::memory_order_relaxed);
      block_.wait_for(block_.received(rank(), to), number - 1, to);  // of the two places one is free
      copy(piece, block_.piece(rank(), to, number));
      sent.store(number + 1, std::memory_order_release);
      wake(sent);
    }
  }

  void receive(std::span<std::byte> bytes, int from) override {
    Counter& received = block_.received(from, rank());
    for (std::size_t done = 0; done < bytes.size(); done += kPiece) {
      const std::span<std::byte> piece = bytes.subspan(done, std::min(kPiece, bytes.size() - done));
      const std::uint32_t number = received.load(std::memory_order_relaxed);
      block_.wait_for(block_.sent(from, rank()), number + 1, from);
      copy(std::span(block_.piece(from, rank(), number), piece.size()), piece.data());
      received.store(number + 1, std::memory_order_release);
      wake(received);
    }
  }

  void barrier() override { take_turn(); }

  void look_for_lost() override { block_.look_for_lost(); }

  [[nodiscard]] bool has_survivors() const override { return true; }

  GroupPtr duplicate() override {
    std::array<char, 256> path{};
    std::shared_ptr<SharedMemory> memory;
    if (rank() == 0) {
      memory = std::make_shared<SharedMemory>(SharedBlock::bytes(size()));
      memory->path().string().copy(path.data(), path.size() - 1);
    }
    broadcast(std::as_writable_bytes(std::span(path)), 0);
    if (!memory) memory = std::make_shared<SharedMemory>(path.data(), SharedBlock::bytes(size()));
    const auto group = std::make_shared<SharedGroup>(std::move(memory), rank(), size(), block_.deadline());
    group->barrier();  // all have mapped the block while rank 0 is here
    return group;
  }

  GroupPtr survivors() override {
    const SharedBlock::Survivors next = block_.go_on();
    if (next.size == 1) return nullptr;
    const auto group = std::make_shared<SharedGroup>(next.memory, next.rank, next.size, block_.deadline());
    group->barrier();  // all have mapped the block while the rank that made it is here
    return group;
  }

 private:
  static constexpr std::size_t kSlot = SharedBlock::kSlot, kPiece = SharedBlock::kPiece;

  static constexpr std::size_t kLeast = std::size_t{64} << 10;  // bytes of a thread: some microseconds

  void copy(std::span<const std::byte> from, std::byte* to) {
    team_.for_pieces(from.size(), kLeast, [&](std::size_t first, std::size_t count) {
      std::copy_n(from.data() + first, count, to + first);
    });
  }

  /// Says that this rank has written its slot of the next turn, and waits until all have.
  void take_turn() {
    ++turn_;
    Counter& own = block_.turn(rank());
    own.store(turn_, std::memory_order_release);
    wake(own);
    for (int other = 0; other < size(); ++other) block_.wait_for(block_.turn(other), turn_, other);
  }

  const SharedBlock block_;
  std::uint32_t turn_ = 0;
  Team team_;  // for all ranks together as many threads as the machine has
};

}  // namespace

std::size_t shared_bytes(int size) { return SharedBlock::bytes(size); }

GroupPtr make_shared_group(std::shared_ptr<SharedMemory> memory, int rank, int size,
                           std::chrono::duration<double> deadline) {
  return std::make_shared<SharedGroup>(std::move(memory), rank, size, deadline);
}

std::vector<GroupPtr> make_groups_of_threads(int size, std::chrono::duration<double> deadline) {
  const auto memory = std::make_shared<SharedMemory>(shared_bytes(size));
  std::vector<GroupPtr> groups;
  for (int rank = 0; rank < size; ++rank) groups.push_back(make_shared_group(memory, rank, size, deadline));
  return groups;
}

}  // namespace concord::collective
