// The texts by which processes find each other.
#include "concord/collective/store.hpp"

#include <thread>

#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;
using collective::Store;
using collective::StoreServer;

namespace {

const StoreServer::Reach kLocal = StoreServer::Reach::this_machine;

}  // namespace

TEST_CASE("a store keeps the first text of a name", "[collective]") {
  const StoreServer server(kLocal, 0);
  Store store("127.0.0.1", server.port(), std::chrono::seconds(5));
  CHECK(store.set("rank0", "a text\nwith \0 bytes"));
  CHECK_FALSE(store.set("rank0", "another"));
  CHECK(store.get("rank0") == std::string("a text\nwith \0 bytes"));
}

TEST_CASE("get waits until another process has set the name", "[collective]") {
  const StoreServer server(kLocal, 0);
  std::string got;
  std::thread reader([&] {
    Store store("127.0.0.1", server.port(), std::chrono::seconds(20));
    got = store.get("late");
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  Store store("127.0.0.1", server.port(), std::chrono::seconds(5));
  CHECK(store.set("late", "here"));
  reader.join();
  CHECK(got == "here");
  CHECK(store.get("never", std::chrono::milliseconds(0)).empty());
  CHECK(store.own_address() == "127.0.0.1");
  Store hurried("127.0.0.1", server.port(), std::chrono::milliseconds(50));
  CHECK(hurried.get("never").empty());
}

TEST_CASE("a port that is in use and a server that is not there are errors", "[collective]") {
  std::uint16_t port = 0;
  {
    const StoreServer server(kLocal, 0);
    port = server.port();
    CHECK_THROWS_WITH(StoreServer(kLocal, port), contains("port " + std::to_string(port)) && contains("in use"));
  }
  CHECK_THROWS_AS(Store("127.0.0.1", port, std::chrono::milliseconds(100)), RankLost);
  CHECK_THROWS_AS(Store("no-such-machine.invalid", port, std::chrono::milliseconds(100)), IoError);
}

TEST_CASE("a text that a process leaves behind is there when its connection ends", "[collective]") {
  const StoreServer server(kLocal, 0);
  const std::chrono::seconds patience(20);
  Store reader("127.0.0.1", server.port(), patience);
  {
    Store first("127.0.0.1", server.port(), patience), second("127.0.0.1", server.port(), patience);
    first.leave_behind("left0", "is gone");
    second.leave_behind("left1", "is gone");
    REQUIRE(second.set("left1", "said so itself"));
    CHECK(reader.get("left0", std::chrono::milliseconds(0)).empty());
  }
  CHECK(reader.get("left0") == "is gone");
  CHECK(reader.get("left1") == "said so itself");
}
