// The launchers of several machines, as threads of a test.
#include "concord/collective/rendezvous.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <thread>

#include "concord/collective/interfaces.hpp"
#include "concord/core/version.hpp"
#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;
using collective::Rendezvous;
using collective::Store;
using collective::StoreServer;

namespace {

const auto never = [] { return false; };

/// A port that was free a moment ago.
std::uint16_t free_port() { return StoreServer(StoreServer::Reach::this_machine, 0).port(); }

collective::Machines local(int count, std::uint16_t port) {
  return collective::machines_at("127.0.0.1:" + std::to_string(port), count);
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
  const StoreServer server(StoreServer::Reach::this_machine, 0);
  Store store("127.0.0.1", server.port(), std::chrono::seconds(5));
  REQUIRE(store.set("node0", R"({"version": "0.0.1", "host": "old-one", "nodes": 2, "ranks": 1})"));
  CHECK_THROWS_WITH(Rendezvous::meet(local(2, server.port()), 1, never),
                    contains("old-one has version 0.0.1") && contains("all machines need the same"));
  CHECK_THAT(store.get("end"), contains("old-one has version 0.0.1"));  // for the other machine
  CHECK_THROWS_WITH(Rendezvous::meet(local(2, server.port()), 1, never), contains("2 machines have come"));
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

TEST_CASE("machines with other numbers of least ranks are refused", "[collective]") {
  const StoreServer server(StoreServer::Reach::this_machine, 0);
  Store store("127.0.0.1", server.port(), std::chrono::seconds(5));
  REQUIRE(store.set("node0", fmt::format(R"({{"version": "{}", "host": "b", "machines": "2", "ranks": 1}})", kVersion)));
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
