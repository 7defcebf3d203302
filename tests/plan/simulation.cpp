// Exchanges whose times are computed by hand, and the symmetric simulation beside that of all ranks.
#include "concord/plan/simulation.hpp"

#include "files.hpp"

namespace concord::test {
namespace {

using plan::Algorithm;
using plan::Cluster;
using plan::Detail;
using plan::Link;

constexpr double kMicro = 1e-6;
constexpr Link kSlow{.latency = 10 * kMicro, .overhead = 0, .gap = 0, .per_byte = 1e-9};

Cluster flat(int ranks, const Link& link = kSlow) { return {.ranks = ranks, .inside = {}, .between = link}; }

}  // namespace

TEST_CASE("the time of an exchange of 1, 2 and 3 ranks", "[plan]") {
  constexpr double kBytes = 8000;
  CHECK(exchange_seconds(flat(1), kBytes, Algorithm::direct) == 0);
  CHECK(exchange_seconds(flat(1), kBytes, Algorithm::ring) == 0);
  // Two messages of 4000 bytes, one after the other: 4 + 10 us each.
  CHECK(exchange_seconds(flat(2), kBytes, Algorithm::direct) == Approx(28 * kMicro));
  CHECK(exchange_seconds(flat(2), kBytes, Algorithm::ring) == Approx(28 * kMicro));
  // Parts of 667 numbers: 2.668 us each, two at a time behind each other; the ring has four rounds.
  CHECK(exchange_seconds(flat(3), kBytes, Algorithm::direct) == Approx(2 * (2 * 2.668 + 10) * kMicro));
  CHECK(exchange_seconds(flat(3), kBytes, Algorithm::ring) == Approx(4 * (2.668 + 10) * kMicro));
}

TEST_CASE("overhead, gap and sums", "[plan]") {
  // The processor sends at 1 and 2 us; a port is busy for 0.5 + 2.668 us: the second message leaves at 4.168, comes at
  // 14.168, is there at 17.336, and is received at 18.336.
  const Link link{.latency = 10 * kMicro, .overhead = 1 * kMicro, .gap = 0.5 * kMicro, .per_byte = 1e-9};
  CHECK(exchange_seconds(flat(3, link), 8000, Algorithm::direct) == Approx(2 * 18.336 * kMicro));
  CHECK(exchange_seconds(flat(2, link), 8000, Algorithm::ring) == Approx(2 * (1 + 4.5 + 10 + 1) * kMicro));
  // Each rank adds its half of two ranks: 8000 bytes.
  Cluster cluster = flat(2);
  cluster.sum_per_byte = 1e-10;
  CHECK(exchange_seconds(cluster, 8000, Algorithm::direct) == Approx(28.8 * kMicro));
}

TEST_CASE("ranks of a machine share its link", "[plan]") {
  const Link fast{.latency = 1 * kMicro, .overhead = 0, .gap = 0, .per_byte = 1e-10};
  Cluster cluster{.ranks = 4, .per_machine = 2, .inside = fast, .between = kSlow};
  // Of each machine four messages of 4 us leave one after another. They arrive at 10 us and later; the first two are
  // for its first rank, which has both at 18 us and goes on; the second rank at 26. Their sums leave at 18, 22, 26 and
  // 30 us; the last has arrived at 44.
  CHECK(exchange_seconds(cluster, 16000, Algorithm::direct) == Approx(44 * kMicro));
  CHECK(exchange_seconds(cluster, 16000, Algorithm::direct, Detail::all) == Approx(44 * kMicro));
  // In one machine: 3 messages of 0.4 us behind each other.
  cluster.per_machine = 4;
  CHECK(exchange_seconds(cluster, 16000, Algorithm::direct) == Approx(2 * (1 + 3 * 0.4) * kMicro));
  CHECK(exchange_seconds(cluster, 16000, Algorithm::ring) == Approx(6 * 1.4 * kMicro));
}

TEST_CASE("one machine stands for all", "[plan]") {
  const Link link{.latency = 12 * kMicro, .overhead = 0.7 * kMicro, .gap = 0.3 * kMicro, .per_byte = 1.3e-9};
  const Link fast{.latency = 2 * kMicro, .overhead = 0.4 * kMicro, .gap = 0.1 * kMicro, .per_byte = 2e-10};
  for (const int per_machine : {1, 2, 3, 4, 8}) {
    for (const int machines : {1, 2, 5, 16}) {
      const Cluster cluster{.ranks = machines * per_machine,
                            .per_machine = per_machine,
                            .inside = fast,
                            .between = link,
                            .sum_per_byte = 1e-10};
      for (const double bytes : {100.0, 5e4, 4e6}) {
        for (const Algorithm algorithm : {Algorithm::direct, Algorithm::ring}) {
          INFO(machines << " machines of " << per_machine << ", " << bytes << " bytes");
          CHECK(exchange_seconds(cluster, bytes, algorithm) ==
                Approx(exchange_seconds(cluster, bytes, algorithm, Detail::all)).epsilon(1e-9));
        }
      }
    }
  }
}

TEST_CASE("clusters that are refused", "[plan]") {
  const auto refusal = [](const Cluster& cluster) {
    return message_of<ArgumentError>([&] { static_cast<void>(exchange_seconds(cluster, 1000, Algorithm::direct)); });
  };
  CHECK(contains(refusal({.ranks = 12, .per_machine = 8, .inside = {}, .between = {}}),
                 "12 ranks do not fill machines of 8"));
  CHECK(contains(refusal({.ranks = 0, .inside = {}, .between = {}}), "at least one rank"));
}

}  // namespace concord::test
