// The launchers of several machines, as threads of a test.
#include "concord/collective/rendezvous.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <thread>

#include "concord/collective/interfaces.hpp"
#include "concord/core/version.hpp"
#include "concord_test.hpp"
#include "setting.hpp"

using namespace concord;
using namespace concord::test;
using collective::Rendezvous;
using collective::Store;
using collective::StoreServer;

namespace {

const auto never = [] { return false; };

/// A port that was free a moment ago.
std::uint16_t free_port() { return StoreServer("127.0.0.1", 0).port(); }

collective::Machines local(int count, std::uint16_t port, int fewest = 0) {
  return collective::machines_at("127.0.0.1:" + std::to_string(port), count, fewest);
}

/// What a machine with one rank enters.
std::string entry(const std::string& machines, const std::string& more = {}) {
  return fmt::format(R"({{"version": "{}", "host": "b", "machines": "{}", "ranks": 1{}}})", kVersion, machines, more);
}

/// Calls `meet` in a thread of its own, and returns its ranks, or the message of its error.
std::future<std::string> ranks_of(const collective::Machines& machines) {
  return std::async(std::launch::async, [machines] {
    try {
      return std::to_string(Rendezvous::meet(machines, 1, never)->ranks());
    } catch (const Error& error) {
      return std::string(error.what());
    }
  });
}

}  // namespace

TEST_CASE("a place to meet is a host and a port", "[collective]") {
  const collective::Machines machines = collective::machines_at("node-0.example.org:29400", 4);
  CHECK(machines.count == 4);
  CHECK(machines.host == "node-0.example.org");
  CHECK(machines.port == 29400);
  CHECK(collective::machines_at("[::1]:80", 2).host == "::1");
  for (const char* wrong : {"", "node0", ":29400", "node0:", "node0:0", "node0:65536", "node0:29400x", "node0:-1"}) {
    INFO(wrong);
    CHECK_THROWS_AS(collective::machines_at(wrong, 2), ArgumentError);
  }
}

TEST_CASE("machines number their ranks without gaps, and learn how the first one ends", "[collective]") {
  constexpr std::size_t kMachines = 3;
  const std::uint16_t port = free_port();
  std::array<std::pair<int, int>, kMachines> ranges;  // first rank, ranks
  std::array<std::string, kMachines> ends, errors;
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < kMachines; ++number) {
    threads.emplace_back([&, number] {
      try {
        const int own = static_cast<int>(number) + 1;
        const auto one = Rendezvous::meet(local(kMachines, port), own, never);
        ranges.at(number) = {one->first_rank(), own};
        if (one->ranks() != 6) errors.at(number) = "not all ranks";
        if (number == 1) {
          ends.at(number) = one->tell({.by_interrupt = false, .failure = "rank 3 fell"}).failure;
        } else {
          for (int i = 0; i < 1000 && !one->told(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
          ends.at(number) = one->told() ? one->told()->failure : "nothing";
        }
      } catch (const std::exception& error) {
        errors.at(number) = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(errors == std::array<std::string, kMachines>{});
  CHECK(ends == std::array<std::string, kMachines>{"rank 3 fell", "rank 3 fell", "rank 3 fell"});
  std::ranges::sort(ranges);
  int next = 0;
  for (const auto& [first, ranks] : ranges) {
    CHECK(first == next);
    next += ranks;
  }
}

TEST_CASE("a machine with another version, and one too many, are refused", "[collective]") {
  const StoreServer server("127.0.0.1", 0);
  Store store("127.0.0.1", server.port(), std::chrono::seconds(5));
  REQUIRE(store.set("node0", R"({"version": "0.0.1", "host": "old-one", "nodes": 2, "ranks": 1})"));
  CHECK_THROWS_WITH(Rendezvous::meet(local(2, server.port()), 1, never),
                    contains("old-one has version 0.0.1") && contains("all machines need the same"));
  CHECK_THAT(store.get("end"), contains("old-one has version 0.0.1"));  // for the other machine
  const StoreServer other("127.0.0.1", 0);
  Store full("127.0.0.1", other.port(), std::chrono::seconds(5));
  for (const char* name : {"node0", "node1"}) REQUIRE(full.set(name, entry("2")));
  CHECK_THROWS_WITH(Rendezvous::meet(local(2, other.port()), 1, never),
                    contains("has started with 2 of 2 machines, without this one"));
}

TEST_CASE("machines that may go on without ranks count those that are left", "[collective]") {
  constexpr std::size_t kMachines = 3;
  const std::uint16_t port = free_port();
  std::array<std::unique_ptr<Rendezvous>, kMachines> machines;
  std::array<std::string, kMachines> errors;
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < kMachines; ++number) {
    threads.emplace_back([&, number] {
      try {
        machines.at(number) = Rendezvous::meet(local(kMachines, port), 2, never, 1);
      } catch (const std::exception& error) {
        errors.at(number) = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(errors == std::array<std::string, kMachines>{});
  std::ranges::sort(machines, {}, [](const auto& machine) { return machine->first_rank(); });
  CHECK(machines[0]->ranks_without(1) == 5);
  CHECK(machines[2]->ranks_without(4) == 4);
  Store store("127.0.0.1", port, std::chrono::seconds(5));
  CHECK_FALSE(machines[1]->survivors(1));
  REQUIRE(store.set("survivors1", "[0,2,3,5]"));
  for (int i = 0; i < 1000 && !machines[1]->survivors(1); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(machines[1]->survivors(1) == "[0,2,3,5]");
  CHECK_FALSE(machines[1]->survivors(2));
  machines[2].reset();  // a machine is lost with its ranks; it says so even where it is killed
  CHECK(machines[0]->ranks_without(0) == 2);
  machines[1].reset();
}

TEST_CASE("a launcher that has left before the start does not count", "[collective]") {
  const StoreServer server("127.0.0.1", 0);
  Store store("127.0.0.1", server.port(), std::chrono::seconds(60));
  {  // killed before the others have come
    Store killed("127.0.0.1", server.port(), std::chrono::seconds(5));
    killed.leave_behind("left-killed", "1");
    REQUIRE(killed.set("node0", entry("2", R"(, "id": "killed")")));
  }
  REQUIRE(store.get("left-killed") == "1");
  // Interrupted while it waits.
  CHECK_FALSE(Rendezvous::meet(local(2, server.port()), 1,
                               [&] { return !store.get("node1", std::chrono::milliseconds(0)).empty(); }));
  auto first = ranks_of(local(2, server.port()));
  REQUIRE_FALSE(store.get("node2").empty());
  auto second = ranks_of(local(2, server.port()));
  CHECK(first.get() == "2");
  CHECK(second.get() == "2");
  CHECK(store.get("start") == "[2,3]");
}

TEST_CASE("at the deadline of a range, those that have left do not count", "[collective]") {
  const Setting deadline("CONCORD_DEADLINE", "1");
  const StoreServer server("127.0.0.1", 0);
  Store store("127.0.0.1", server.port(), std::chrono::seconds(60));
  REQUIRE(store.set("node0", entry("2:3", R"(, "id": "lost")")));
  REQUIRE(store.set("left-lost", "1"));
  CHECK(ranks_of(local(3, server.port(), 2)).get() ==
        fmt::format("1 of 2:3 machines came to 127.0.0.1:{} within 1 s", server.port()));
}

TEST_CASE("a machine that reaches the store late waits for the others as long as the first one", "[collective]") {
  const Setting deadline("CONCORD_DEADLINE", "2");
  const std::uint16_t port = free_port();
  int looks = 0;
  std::future<std::string> other;
  const auto one = Rendezvous::meet(local(2, port), 1, [&] {
    // Before it reaches the store, a whole deadline passes. The other one comes after it.
    if (++looks == 1) CHECK_THAT(ranks_of(local(2, free_port())).get(), contains("1 of 2 machines came"));
    if (looks == 2) other = ranks_of(local(2, port));
    return false;
  });
  CHECK(one->ranks() == 2);
  CHECK(other.get() == "2");
}

TEST_CASE("machines with other numbers of least ranks are refused", "[collective]") {
  const StoreServer server("127.0.0.1", 0);
  Store store("127.0.0.1", server.port(), std::chrono::seconds(5));
  REQUIRE(
      store.set("node0", fmt::format(R"({{"version": "{}", "host": "b", "machines": "2", "ranks": 1}})", kVersion)));
  CHECK_THROWS_WITH(Rendezvous::meet(local(2, server.port()), 1, never, 2),
                    contains("--min-ranks 2, and b with 0; 0 is without it"));
}

TEST_CASE("an interrupt ends the wait for other machines", "[collective]") {
  int looks = 0;
  CHECK_FALSE(Rendezvous::meet(local(2, free_port()), 1, [&] { return ++looks > 2; }));
}

TEST_CASE("interfaces have names and addresses", "[collective]") {
  CHECK(collective::address_of_interface("lo") == "127.0.0.1");
  CHECK(collective::address_of_interface("127.0.0.1") == "127.0.0.1");
  CHECK_THROWS_WITH(collective::address_of_interface("nosuch0"), contains("\"nosuch0\"") && contains("lo (127.0.0.1)"));
  CHECK(collective::own_address_of("127.0.0.1") == "127.0.0.1");
  CHECK(collective::own_address_of("192.0.2.7").empty());
  CHECK_THROWS_AS(collective::own_address_of("no-such-machine.invalid"), IoError);
  CHECK(collective::is_loopback("127.0.1.1"));
  CHECK_FALSE(collective::is_loopback("10.0.0.1"));
}
