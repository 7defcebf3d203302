// Each rank sends every other rank its part, and sums its own part in the order of the ranks, a segment at a time:
// while one is summed, the next ones arrive.
#include "concord/collective/messages.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <exception>
#include <utility>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/core/parallel.hpp"

namespace concord::collective {
namespace {

using Pendings = std::deque<Messages::PendingPtr>;

constexpr std::size_t kMessage = std::size_t{1} << 20;  // bytes; of a sum, at most
constexpr std::size_t kLeastMessage = std::size_t{64} << 10;
constexpr std::size_t kAhead = 4;                       // messages of each rank that may arrive before they are summed
constexpr std::size_t kEarly = std::size_t{512} << 10;  // bytes of a message that waits for its receiver
constexpr std::size_t kScatter = std::size_t{256} << 10;  // larger broadcasts go by way of all ranks

void wait_for_all(Pendings& pending) {
  for (; !pending.empty(); pending.pop_front()) pending.front()->wait();
}

/// The elements [done, done + most) of a part, as far as there are any.
Part piece_of(Part part, std::size_t done, std::size_t most) {
  const std::size_t begin = std::min(part.begin + done, part.end);
  return {begin, std::min(begin + most, part.end)};
}

/// sums[i] = ((start[i] + terms[0][i]) + terms[1][i]) + …; `sums` may be one of the terms.
void sum_in_order(std::span<float> sums, const float* start, std::span<const float* const> terms) {
  for_blocks(sums.size(), [&](std::size_t, std::size_t first, std::size_t count) {
    std::array<float, 1024> numbers{};
    for (std::size_t at = first; at < first + count; at += numbers.size()) {
      const std::size_t some = std::min(numbers.size(), first + count - at);
      if (start == nullptr) {
        std::fill_n(numbers.begin(), some, 0.0F);
      } else {
        std::copy_n(start + at, some, numbers.begin());
      }
      for (const float* const term : terms) {
        for (std::size_t i = 0; i < some; ++i) numbers[i] += term[at + i];
      }
      std::copy_n(numbers.begin(), some, sums.begin() + static_cast<std::ptrdiff_t>(at));
    }
  });
}

class MessageGroup final : public Group {
 public:
  MessageGroup(std::unique_ptr<Messages> messages, int rank, int size, std::string transport)
      : Group(rank, size),
        messages_(std::move(messages)),
        transport_(std::move(transport)),
        early_(static_cast<std::size_t>(size)) {}
  MessageGroup(const MessageGroup&) = delete;
  MessageGroup& operator=(const MessageGroup&) = delete;
  ~MessageGroup() override {
    if (std::uncaught_exceptions() > 0) return;
    try {
      for (Early& early : early_) wait_for_all(early.pending);
    } catch (const Error&) {  // who was to receive it is gone
    }
  }

  [[nodiscard]] std::string transport() const override { return transport_; }

  void reduce_scatter(std::span<float> values, std::span<const float> start) override {
    CONCORD_CHECK(start.empty() || start.size() == values.size(), ArgumentError,
                  "a sum of {} numbers cannot start from {}", values.size(), start.size());
    const std::size_t each = part_of(values.size(), size(), 0).size(), segment = segment_of(each);
    const Part own = part_of(values.size(), size(), rank());
    const auto others = static_cast<std::size_t>(size()) - 1;
    std::vector<float> arrived(own.size() > 0 ? kAhead * others * segment : 0);
    // After the memory, which they leave alone once they are gone.
    Pendings sent, received;
    const auto place = [&](std::size_t number, int from) {
      const auto other = static_cast<std::size_t>(from > rank() ? from - 1 : from);
      return arrived.data() + (number % kAhead * others + other) * segment;
    };
    const auto expect = [&](std::size_t number) {
      const Part piece = piece_of(own, number * segment, segment);
      if (piece.size() == 0) return;
      for (int from = 0; from < size(); ++from) {
        if (from == rank()) continue;
        received.push_back(
            messages_->receive(from, std::as_writable_bytes(std::span(place(number, from), piece.size()))));
      }
    };
    for (std::size_t number = 0; number < kAhead; ++number) expect(number);
    for (std::size_t done = 0; done < each; done += segment) {
      for (int step = 1; step < size(); ++step) {
        const int to = (rank() + step) % size();
        const Part piece = piece_of(part_of(values.size(), size(), to), done, segment);
        if (piece.size() > 0)
          sent.push_back(messages_->send(to, std::as_bytes(values.subspan(piece.begin, piece.size()))));
      }
    }
    std::vector<const float*> terms(static_cast<std::size_t>(size()));
    for (std::size_t number = 0;; ++number) {
      const Part piece = piece_of(own, number * segment, segment);
      if (piece.size() == 0) break;
      for (int from = 0; from < size(); ++from) {
        const bool is_own = from == rank();
        terms[static_cast<std::size_t>(from)] = is_own ? values.data() + piece.begin : place(number, from);
        if (is_own) continue;
        received.front()->wait();
        received.pop_front();
      }
      sum_in_order(values.subspan(piece.begin, piece.size()), start.empty() ? nullptr : start.data() + piece.begin,
                   terms);
      expect(number + kAhead);
    }
    wait_for_all(sent);
  }

  void all_gather(std::span<std::byte> values, std::size_t element) override {
    CONCORD_CHECK(element > 0 && values.size() % element == 0, ArgumentError,
                  "{} bytes are no whole number of elements of {} bytes", values.size(), element);
    const auto part = [&](int of) {
      const Part elements = part_of(values.size() / element, size(), of);
      return values.subspan(elements.begin * element, elements.size() * element);
    };
    Pendings pending;
    for (std::size_t done = 0; done < part(0).size(); done += kMessage) {
      for (int step = 1; step < size(); ++step) {
        const int from = (rank() + size() - step) % size(), to = (rank() + step) % size();
        receive_piece(pending, from, part(from), done);
        send_piece(pending, to, part(rank()), done);
      }
    }
    wait_for_all(pending);
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    const bool by_way_of_all = bytes.size() > kScatter && size() > 2;
    Pendings pending;
    for (int other = 0; other < size(); ++other) {
      const Part part = by_way_of_all ? part_of(bytes.size(), size(), other) : Part{0, bytes.size()};
      const std::span<std::byte> own = bytes.subspan(part.begin, part.size());
      for (std::size_t done = 0; done < own.size(); done += kMessage) {
        if (rank() == root && other != root) send_piece(pending, other, own, done);
        if (rank() == other && other != root) receive_piece(pending, root, own, done);
      }
    }
    wait_for_all(pending);
    if (by_way_of_all) all_gather(bytes, 1);
  }

  void send(std::span<const std::byte> bytes, int to) override {
    Early& early = early_[static_cast<std::size_t>(to)];
    for (std::size_t done = 0; done < bytes.size(); done += kEarly) {
      const std::span<const std::byte> piece = bytes.subspan(done, std::min(kEarly, bytes.size() - done));
      if (early.pending.size() == early.copies.size()) {
        early.pending.front()->wait();
        early.pending.pop_front();
      }
      std::vector<std::byte>& copy = early.copies[early.count++ % early.copies.size()];
      copy.assign(piece.begin(), piece.end());
      early.pending.push_back(messages_->send(to, copy));
    }
  }

  void receive(std::span<std::byte> bytes, int from) override {
    Pendings pending;
    for (std::size_t done = 0; done < bytes.size(); done += kEarly) {
      pending.push_back(messages_->receive(from, bytes.subspan(done, std::min(kEarly, bytes.size() - done))));
    }
    wait_for_all(pending);
  }

  void barrier() override {
    const std::byte own{1};
    std::vector<std::byte> theirs(static_cast<std::size_t>(size()));
    Pendings pending;
    for (int other = 0; other < size(); ++other) {
      if (other == rank()) continue;
      pending.push_back(messages_->receive(other, std::span(theirs).subspan(static_cast<std::size_t>(other), 1)));
      pending.push_back(messages_->send(other, {&own, 1}));
    }
    wait_for_all(pending);
  }

 private:
  /// What `send` has returned from, and the other rank may not have yet.
  struct Early {
    std::array<std::vector<std::byte>, 2> copies;
    Pendings pending;
    std::size_t count = 0;
  };

  /// Floats of a message of a sum: some messages in each part, and not too much memory for those that arrive.
  [[nodiscard]] std::size_t segment_of(std::size_t each) const {
    constexpr std::size_t kMostArrived = std::size_t{64} << 20;
    const std::size_t most =
        std::clamp(kMostArrived / (kAhead * static_cast<std::size_t>(size())), kLeastMessage, kMessage);
    return std::clamp(each * sizeof(float) / (2 * kAhead), kLeastMessage, most) / sizeof(float);
  }

  void send_piece(Pendings& pending, int to, std::span<const std::byte> whole, std::size_t done) {
    if (done < whole.size())
      pending.push_back(messages_->send(to, whole.subspan(done, std::min(kMessage, whole.size() - done))));
  }
  void receive_piece(Pendings& pending, int from, std::span<std::byte> whole, std::size_t done) {
    if (done < whole.size())
      pending.push_back(messages_->receive(from, whole.subspan(done, std::min(kMessage, whole.size() - done))));
  }

  std::unique_ptr<Messages> messages_;
  std::string transport_;
  std::vector<Early> early_;  // by rank
};

}  // namespace

GroupPtr make_message_group(std::unique_ptr<Messages> messages, int rank, int size, std::string transport) {
  return std::make_shared<MessageGroup>(std::move(messages), rank, size, std::move(transport));
}

}  // namespace concord::collective
