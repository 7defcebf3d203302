// Each rank sends every other rank its part, and sums its own part in the order of the ranks, a segment at a time:
// while one is summed, the next ones arrive.
#include "concord/collective/messages.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "concord/collective/rounding.hpp"
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

/// sums[i] = ((start[i] + terms[0][i]) + terms[1][i]) + … in fp32, rounded at the end; `sums` may be one of the terms.
template <class Number>
void sum_in_order(std::span<Number> sums, const float* start, std::span<const Number* const> terms) {
  for_blocks(sums.size(), [&](std::size_t, std::size_t first, std::size_t count) {
    std::array<float, 1024> numbers{};
    for (std::size_t at = first; at < first + count; at += numbers.size()) {
      const std::size_t some = std::min(numbers.size(), first + count - at);
      if (start == nullptr) {
        std::fill_n(numbers.begin(), some, 0.0F);
      } else {
        std::copy_n(start + at, some, numbers.begin());
      }
      for (const Number* const term : terms) add_run(term + at, numbers.data(), some);
      round_run(numbers.data(), sums.data() + at, some);
    }
  });
}

class MessageGroup final : public Group {
 public:
  MessageGroup(std::unique_ptr<Messages> messages, int rank, int size, std::string transport)
      : Group(rank, size),
        messages_(std::move(messages)),
        transport_(std::move(transport)),
        used_(static_cast<std::size_t>(size)),
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

  GroupPtr duplicate() override {
    GroupPtr group = make_message_group(messages_->duplicate(), rank(), size(), transport_);
    group->barrier();
    return group;
  }

  void reduce_scatter(std::span<float> values, std::span<const float> start) override {
    const Sum<float> sum(*this, values, start);
    sum.run([](Part) {});
  }

  void all_reduce(std::span<float> values, std::span<const float> start) override { sum_on_all(values, start); }
  void sum_rounded(std::span<float> values, Precision precision, float scale) override {
    with_number_of(precision, [&]<class Number>(Number) {
      rounded_.resize(values.size() * sizeof(Number));
      const std::span<Number> numbers(reinterpret_cast<Number*>(rounded_.data()), values.size());
      round_scaled(values, scale, numbers);
      sum_on_all(numbers, {});
      widen_scaled(std::span<const Number>(numbers), 1 / scale, values);
    });
  }

  template <class Number>
  void sum_on_all(std::span<Number> values, std::span<const float> start) {
    const Sum<Number> sum(*this, values, start);
    // What a rank has summed goes to all at once. It arrives where the terms have been sent from, which that rank has
    // received by then.
    Pendings pending;
    for (std::size_t done = 0; done < sum.each; done += sum.segment) {
      for (int step = 1; step < size(); ++step) {
        const int from = (rank() + size() - step) % size();
        const Part piece = piece_of(sum.part(from), done, sum.segment);
        if (piece.size() > 0) receive(pending, from, bytes_of(values, piece));
      }
    }
    sum.run([&](Part piece) {
      for (int step = 1; step < size(); ++step) send(pending, (rank() + step) % size(), bytes_of(values, piece));
    });
    wait_for_all(pending);
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
      send(early.pending, to, copy);
    }
  }

  void receive(std::span<std::byte> bytes, int from) override {
    Pendings pending;
    for (std::size_t done = 0; done < bytes.size(); done += kEarly) {
      receive(pending, from, bytes.subspan(done, std::min(kEarly, bytes.size() - done)));
    }
    wait_for_all(pending);
  }

  [[nodiscard]] bool has_survivors() const override { return true; }

  GroupPtr survivors() override {
    for (Early& early : early_) early.pending.clear();
    return messages_->survivors();
  }

  void barrier() override {
    const std::byte own{1};
    std::vector<std::byte> theirs(static_cast<std::size_t>(size()));
    Pendings pending;
    for (int other = 0; other < size(); ++other) {
      if (other == rank()) continue;
      receive(pending, other, std::span(theirs).subspan(static_cast<std::size_t>(other), 1));
      send(pending, other, {&own, 1});
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

  /// Numbers of messages to and from another rank that are used already.
  struct Used {
    std::uint64_t to = 0, from = 0;
  };

  /// A sum of each rank's part. Its messages have the numbers that come next at its construction.
  template <class Number>
  struct Sum {
    Sum(MessageGroup& ranks, std::span<Number> numbers, std::span<const float> from)
        : group(ranks),
          values(numbers),
          start(from),
          each(part_of(numbers.size(), ranks.size(), 0).size()),
          segment(ranks.segment_of(each, sizeof(Number))),
          first(ranks.used_) {
      CONCORD_CHECK(start.empty() || start.size() == values.size(), ArgumentError,
                    "a sum of {} numbers cannot start from {}", values.size(), start.size());
      for (int other = 0; other < group.size(); ++other) {
        if (other == group.rank()) continue;
        Used& used = group.used_[static_cast<std::size_t>(other)];
        used.to += segments_of(part(other));
        used.from += segments_of(part(group.rank()));
      }
    }

    [[nodiscard]] Part part(int of) const { return part_of(values.size(), group.size(), of); }
    [[nodiscard]] std::size_t segments_of(Part part) const { return (part.size() + segment - 1) / segment; }

    /// Calls `done` with each segment of the own part that is summed.
    void run(const std::function<void(Part)>& done) const {
      const int rank = group.rank(), size = group.size();
      const Part own = part(rank);
      const auto others = static_cast<std::size_t>(size) - 1;
      std::vector<Number> arrived(std::min(kAhead, segments_of(own)) * others * segment);
      Pendings sent, received;  // after the memory, which they leave alone once they are gone
      const auto place = [&](std::size_t number, int from) {
        const auto other = static_cast<std::size_t>(from > rank ? from - 1 : from);
        return arrived.data() + (number % kAhead * others + other) * segment;
      };
      const auto expect = [&](std::size_t number) {
        const Part piece = piece_of(own, number * segment, segment);
        for (int from = 0; from < size && piece.size() > 0; ++from) {
          if (from == rank) continue;
          received.push_back(
              group.messages_->receive(from, first[static_cast<std::size_t>(from)].from + number,
                                       std::as_writable_bytes(std::span(place(number, from), piece.size()))));
        }
      };
      for (std::size_t number = 0; number < kAhead; ++number) expect(number);
      for (std::size_t number = 0; number * segment < each; ++number) {
        for (int step = 1; step < size; ++step) {
          const int to = (rank + step) % size;
          const Part piece = piece_of(part(to), number * segment, segment);
          if (piece.size() == 0) continue;
          sent.push_back(group.messages_->send(to, first[static_cast<std::size_t>(to)].to + number,
                                               std::as_bytes(values.subspan(piece.begin, piece.size()))));
        }
      }
      std::vector<const Number*> terms(static_cast<std::size_t>(size));
      for (std::size_t number = 0; number < segments_of(own); ++number) {
        const Part piece = piece_of(own, number * segment, segment);
        for (int from = 0; from < size; ++from) {
          const bool is_own = from == rank;
          terms[static_cast<std::size_t>(from)] = is_own ? values.data() + piece.begin : place(number, from);
          if (is_own) continue;
          received.front()->wait();
          received.pop_front();
        }
        sum_in_order<Number>(values.subspan(piece.begin, piece.size()),
                             start.empty() ? nullptr : start.data() + piece.begin, terms);
        expect(number + kAhead);
        done(piece);
      }
      wait_for_all(sent);
    }

    MessageGroup& group;
    std::span<Number> values;
    std::span<const float> start;
    std::size_t each, segment;  // elements
    std::vector<Used> first;    // by rank
  };

  template <class Number>
  [[nodiscard]] static std::span<std::byte> bytes_of(std::span<Number> values, Part piece) {
    return std::as_writable_bytes(values.subspan(piece.begin, piece.size()));
  }

  /// Numbers of a message of a sum: some messages in each part, and not too much memory for those that arrive.
  [[nodiscard]] std::size_t segment_of(std::size_t each, std::size_t number) const {
    constexpr std::size_t kMostArrived = std::size_t{64} << 20;
    const std::size_t most =
        std::clamp(kMostArrived / (kAhead * static_cast<std::size_t>(size())), kLeastMessage, kMessage);
    return std::clamp(each * number / (2 * kAhead), kLeastMessage, most) / number;
  }

  void send(Pendings& pending, int to, std::span<const std::byte> bytes) {
    pending.push_back(messages_->send(to, used_[static_cast<std::size_t>(to)].to++, bytes));
  }
  void receive(Pendings& pending, int from, std::span<std::byte> bytes) {
    pending.push_back(messages_->receive(from, used_[static_cast<std::size_t>(from)].from++, bytes));
  }
  void send_piece(Pendings& pending, int to, std::span<const std::byte> whole, std::size_t done) {
    if (done < whole.size()) send(pending, to, whole.subspan(done, std::min(kMessage, whole.size() - done)));
  }
  void receive_piece(Pendings& pending, int from, std::span<std::byte> whole, std::size_t done) {
    if (done < whole.size()) receive(pending, from, whole.subspan(done, std::min(kMessage, whole.size() - done)));
  }

  std::unique_ptr<Messages> messages_;
  std::string transport_;
  std::vector<std::byte> rounded_;  // numbers on their way
  std::vector<Used> used_;          // by rank
  std::vector<Early> early_;        // by rank
};

}  // namespace

GroupPtr make_message_group(std::unique_ptr<Messages> messages, int rank, int size, std::string transport) {
  return std::make_shared<MessageGroup>(std::move(messages), rank, size, std::move(transport));
}

}  // namespace concord::collective
