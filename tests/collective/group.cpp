// The operations of a group, over each transport.
#include "concord/collective/group.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "collective/rank_threads.hpp"

using namespace concord;
using namespace concord::test;
using collective::GroupPtr;
using collective::part_of;

namespace {

/// What rank `rank` adds to element i: of different magnitudes, so that the order of a sum shows.
float term(int rank, std::size_t i) {
  return std::sin(static_cast<float>(i % 977) + 0.5F) *
         std::pow(10.0F, static_cast<float>((i + 3U * static_cast<unsigned>(rank)) % 7));
}

std::vector<float> terms(int rank, std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = term(rank, i);
  return values;
}

std::vector<float> sum_in_order(int size, std::size_t n, float start) {
  std::vector<float> sums(n, start);
  for (std::size_t i = 0; i < n; ++i) {
    for (int rank = 0; rank < size; ++rank) sums[i] += term(rank, i);
  }
  return sums;
}

const std::vector<std::string> kNoErrors3(3), kNoErrors2(2);
constexpr std::chrono::seconds kPatience{60};

}  // namespace

TEST_CASE("the parts of a vector cover it", "[collective]") {
  CHECK(part_of(10, 4, 0) == collective::Part{0, 3});
  CHECK(part_of(10, 4, 3) == collective::Part{9, 10});
  CHECK(part_of(2, 4, 1) == collective::Part{1, 2});
  CHECK(part_of(2, 4, 2).size() == 0);
  CHECK(part_of(0, 3, 1).size() == 0);
}

TEST_CASE("all_reduce adds in the order of the ranks", "[collective]") {
  for (const Transport transport : transports()) {
    for (const int size : {1, 2, 3, 4, 5}) {
      // Less than a rank each, odd, and more than one slot of the shared memory.
      for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{1001}, std::size_t{2'500'003}}) {
        INFO(static_cast<int>(transport) << ": " << size << " ranks, " << n << " numbers");
        std::vector<std::vector<float>> results(static_cast<std::size_t>(size));
        const auto errors = on_ranks(
            size,
            [&](const GroupPtr& group) {
              std::vector<float> values = terms(group->rank(), n);
              group->all_reduce(values);
              results[static_cast<std::size_t>(group->rank())] = std::move(values);
            },
            kPatience, transport);
        CHECK(errors == std::vector<std::string>(static_cast<std::size_t>(size)));
        const std::vector<float> expected = sum_in_order(size, n, 0);
        for (const std::vector<float>& result : results) CHECK((result == expected));
      }
    }
  }
}

TEST_CASE("all_reduce can start from what all ranks have", "[collective]") {
  for (const Transport transport : transports()) {
    std::vector<float> result;
    const auto errors = on_ranks(
        3,
        [&](const GroupPtr& group) {
          std::vector<float> values = terms(group->rank(), 100);
          const std::vector<float> start(100, 1e3F);
          group->all_reduce(values, start);
          if (group->rank() == 2) result = values;
        },
        kPatience, transport);
    CHECK(errors == kNoErrors3);
    CHECK((result == sum_in_order(3, 100, 1e3F)));
  }
}

TEST_CASE("all_gather and broadcast move bytes of any size", "[collective]") {
  for (const Transport transport : transports()) {
    for (const std::size_t n : {std::size_t{2}, std::size_t{10'000'019}}) {
      INFO(static_cast<int>(transport) << ": " << n << " bytes");
      std::array<bool, 3> right{};
      const auto errors = on_ranks(
          3,
          [&](const GroupPtr& group) {
            const int rank = group->rank();
            std::vector<std::byte> all(n);
            const collective::Part own = part_of(n, 3, rank);
            for (std::size_t i = own.begin; i < own.end; ++i) all[i] = static_cast<std::byte>(i * 7);
            group->all_gather(all, 1);
            bool good = true;
            for (std::size_t i = 0; i < n; ++i) good = good && all[i] == static_cast<std::byte>(i * 7);
            std::vector<std::byte> text(n, static_cast<std::byte>(rank));
            group->broadcast(text, 1);
            good = good && std::ranges::count(text, std::byte{1}) == static_cast<std::ptrdiff_t>(n);
            right[static_cast<std::size_t>(rank)] = good;
          },
          kPatience, transport);
      CHECK(errors == kNoErrors3);
      CHECK(right == std::array<bool, 3>{true, true, true});
    }
  }
}

TEST_CASE("two ranks exchange messages while a third one computes", "[collective]") {
  constexpr std::size_t kBytes = 3'000'001;
  for (const Transport transport : transports()) {
    bool is_right = false;
    const auto errors = on_ranks(
        3,
        [&](const GroupPtr& group) {
          std::vector<std::byte> bytes(kBytes, std::byte{0});
          if (group->rank() == 0) {
            std::fill(bytes.begin(), bytes.end(), std::byte{42});
            group->send(bytes, 1);
            group->receive(bytes, 1);
            is_right = std::ranges::count(bytes, std::byte{43}) == static_cast<std::ptrdiff_t>(kBytes);
          } else if (group->rank() == 1) {
            group->receive(bytes, 0);
            for (std::byte& byte : bytes) byte = static_cast<std::byte>(static_cast<int>(byte) + 1);
            group->send(bytes, 0);
          }
          group->barrier();
        },
        kPatience, transport);
    CHECK(errors == kNoErrors3);
    CHECK(is_right);
  }
}

TEST_CASE("two ranks may both send before they receive, and one may leave after it", "[collective]") {
  for (const Transport transport : transports()) {
    std::array<char, 2> got{};
    const auto errors = on_ranks(
        2,
        [&](const GroupPtr& group) {
          const char letter = group->rank() == 0 ? 'a' : 'b';
          group->send(std::as_bytes(std::span(&letter, 1)), 1 - group->rank());
          if (group->rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
          char& place = got[static_cast<std::size_t>(group->rank())];
          group->receive(std::as_writable_bytes(std::span(&place, 1)), 1 - group->rank());
        },
        kPatience, transport);
    CHECK(errors == kNoErrors2);
    CHECK(got == std::array<char, 2>{'b', 'a'});
  }
}

TEST_CASE("a rank that leaves ends the group for all, with its number", "[collective]") {
  for (const Transport transport : transports()) {
    const auto errors = on_ranks(
        3,
        [](const GroupPtr& group) {
          group->barrier();
          if (group->rank() == 1) throw Error("no memory");
          group->barrier();
        },
        kPatience, transport);
    CHECK(errors[1] == "no memory");
    CHECK_THAT(errors[0], contains("rank 1 (process") && contains("has left the training"));
    CHECK(errors[2] == errors[0]);
  }
}

TEST_CASE("a rank that does not answer is lost after the deadline", "[collective]") {
  for (const Transport transport : transports()) {
    const auto errors = on_ranks(
        2,
        [](const GroupPtr& group) {
          group->barrier();
          if (group->rank() == 0) group->barrier();
          if (group->rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        },
        std::chrono::milliseconds(500), transport);
    CHECK_THAT(errors[0], contains("rank 1") && contains("did not answer for 0.5 s"));
    CHECK(errors[1].empty());
  }
}

TEST_CASE("a duplicate of a group has an order of its own", "[collective]") {
  constexpr int kSums = 50;
  for (const Transport transport : transports()) {
    const auto errors = on_ranks(
        3,
        [&](const GroupPtr& group) {
          const GroupPtr second = group->duplicate();
          const auto sum_on = [rank = group->rank()](collective::Group& on, float first) {
            for (int i = 0; i < kSums; ++i) {
              std::vector<float> values(1000, first + static_cast<float>(rank + i));
              on.all_reduce(values);
              if (values[999] != 3 * (first + static_cast<float>(i)) + 3) throw std::runtime_error("a wrong sum");
            }
          };
          std::exception_ptr failed;
          std::thread beside([&] {
            try {
              sum_on(*second, 1000);
            } catch (...) {
              failed = std::current_exception();
            }
          });
          sum_on(*group, 0);
          beside.join();
          if (failed) std::rethrow_exception(failed);
          if (group->duplicate()->size() != 3) throw std::runtime_error("a third group of another size");
        },
        kPatience, transport);
    CHECK(errors == kNoErrors3);
  }
}
