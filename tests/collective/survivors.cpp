// Groups that go on without a rank, by all transports.
#include <latch>
#include <memory>
#include <tuple>

#include "collective/rank_threads.hpp"
#include "concord/core/error.hpp"

using namespace concord;
using namespace concord::test;
using collective::GroupPtr;

namespace {

/// The sum over a group of what each rank of the start adds, its number plus 1.
float sum_of_numbers(const GroupPtr& group, int first_rank) {
  float sum = static_cast<float>(first_rank + 1);
  if (group) group->all_reduce({&sum, 1});
  return sum;
}

}  // namespace

TEST_CASE("a group goes on without ranks that left, in the same order", "[collective]") {
  const Transport transport = GENERATE(from_range(transports()));
  using Seen = std::tuple<int, int, float>;  // rank, size, sum
  std::vector<Seen> seen(4);
  const auto errors = on_ranks(
      4,
      [&](const GroupPtr& group) {
        const int first = group->rank();
        group->barrier();
        if (first == 1) throw Error("no memory");
        try {
          group->barrier();
        } catch (const RankLost&) {
          const GroupPtr three = group->survivors();
          const float sum = sum_of_numbers(three, first);
          seen[static_cast<std::size_t>(first)] = {three->rank(), three->size(), sum};
          // And once more, from the group of three.
          if (first == 3) throw;
          GroupPtr two;
          try {
            three->barrier();
          } catch (const RankLost&) {
            two = three->survivors();
          }
          if (sum_of_numbers(two, first) != 4) throw Error("the sum of two is wrong");
        }
      },
      std::chrono::seconds(60), transport);
  CHECK(errors[0].empty());
  CHECK(errors[2].empty());
  CHECK(seen == std::vector<Seen>{{0, 3, 8}, {0, 0, 0}, {1, 3, 8}, {2, 3, 8}});
}

TEST_CASE("a rank that is left alone has no group", "[collective]") {
  const Transport transport = GENERATE(from_range(transports()));
  bool is_alone = false;
  const auto errors = on_ranks(
      2,
      [&](const GroupPtr& group) {
        if (group->rank() == 0) return;
        try {
          group->barrier();
        } catch (const RankLost&) {
          is_alone = group->survivors() == nullptr;
        }
      },
      std::chrono::seconds(60), transport);
  CHECK(errors == std::vector<std::string>(2));
  CHECK(is_alone);
}

TEST_CASE("a group goes on without a rank that is silent, and that one learns it", "[collective]") {
  const Transport transport = GENERATE(from_range(transports()));
  std::vector<int> sizes(3);
  std::latch gone_on(2);
  const auto errors = on_ranks(
      3,
      [&](const GroupPtr& group) {
        const auto rank = static_cast<std::size_t>(group->rank());
        if (rank == 1) gone_on.wait();
        try {
          group->barrier();  // the silent one still sees that all have come to this one
          group->barrier();
        } catch (const RankLost&) {
          const GroupPtr left = group->survivors();
          if (rank != 1) gone_on.count_down();
          sizes[rank] = left->size();
        }
      },
      std::chrono::milliseconds(800), transport);
  CHECK(sizes == std::vector<int>{2, 0, 2});
  CHECK(errors[0].empty());
  CHECK_THAT(errors[1], contains("the other ranks have gone on without rank 1"));
}

TEST_CASE("ranks that wait for one that goes on follow it", "[collective]") {
  // Rank 1 has learned elsewhere, as from a kernel, that a rank is missing.
  const Transport transport = GENERATE(from_range(transports()));
  std::vector<int> sizes(3);
  const auto errors = on_ranks(
      3,
      [&](const GroupPtr& group) {
        const auto rank = static_cast<std::size_t>(group->rank());
        if (rank == 2) return;
        try {
          if (rank == 0) group->barrier();
          throw RankLost("missing on the device");
        } catch (const RankLost&) {
          sizes[rank] = group->survivors()->size();
        }
      },
      std::chrono::seconds(60), transport);
  CHECK(errors == std::vector<std::string>(3));
  CHECK(sizes == std::vector<int>{2, 2, 0});
}

TEST_CASE("a second rank is lost while the others agree", "[collective]") {
  const Transport transport = GENERATE(from_range(transports()));
  std::vector<int> sizes(4);
  const auto errors = on_ranks(
      4,
      [&](const GroupPtr& group) {
        const auto rank = static_cast<std::size_t>(group->rank());
        if (rank == 0) return;
        try {
          group->barrier();
        } catch (const RankLost&) {
          if (rank == 2) return;
          sizes[rank] = group->survivors()->size();
        }
      },
      std::chrono::seconds(60), transport);
  CHECK(errors == std::vector<std::string>(4));
  CHECK(sizes == std::vector<int>{0, 2, 0, 2});
}

TEST_CASE("without the store no rank of several machines goes on", "[collective]") {
  if (!collective::has_gloo()) {
    WARN("skipped: this is a build without gloo");
    return;
  }
  constexpr std::chrono::seconds kDeadline{1};
  auto server = std::make_unique<collective::StoreServer>("127.0.0.1", 0);
  std::vector<GroupPtr> groups(2);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < groups.size(); ++rank) {
    threads.emplace_back([&, rank] {
      groups[rank] = make_gloo_group(std::make_shared<collective::Store>("127.0.0.1", server->port(), kDeadline),
                                     {.rank = static_cast<int>(rank),
                                      .size = 2,
                                      .address = "127.0.0.1",
                                      .deadline = kDeadline,
                                      .prefix = "gloo/"});
    });
  }
  for (std::thread& thread : threads) thread.join();
  server.reset();
  groups[1].reset();
  CHECK_THROWS_AS(groups[0]->barrier(), RankLost);
  CHECK_THROWS_WITH(groups[0]->survivors(), contains("rank 1 (process ") && contains("has left the training") &&
                                                contains("cannot be reached for 1 s") &&
                                                contains("no rank goes on without it"));
}
