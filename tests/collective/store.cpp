// The texts by which processes find each other.
#include "concord/collective/store.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;
using collective::Store;
using collective::StoreServer;

namespace {

constexpr const char* kLocal = "127.0.0.1";

/// A client that writes what it is told and reads no answer.
class RawClient {
 public:
  RawClient(std::uint16_t port, const std::string& words) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    place.sin_port = htons(port);
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0);
    REQUIRE(::write(socket_, words.data(), words.size()) == static_cast<ssize_t>(words.size()));
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient() { ::close(socket_); }
  [[nodiscard]] bool is_hung_up() const {
    char byte = 0;
    return ::read(socket_, &byte, 1) <= 0;
  }

 private:
  int socket_;
};

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
    static_cast<void>(store.set("waits", "1"));
    got = store.get("late");
  });
  Store store("127.0.0.1", server.port(), std::chrono::seconds(5));
  CHECK(store.get("waits") == "1");
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

TEST_CASE("a process that is lost while it waits leaves its text at once", "[collective]") {
  const StoreServer server(kLocal, 0);
  Store reader("127.0.0.1", server.port(), std::chrono::seconds(60));
  {
    const RawClient client(server.port(), "will left 7\nis goneset waits 1\n1get never 3600000\n");
    REQUIRE(reader.get("waits") == "1");
    CHECK(reader.get("left", std::chrono::milliseconds(0)).empty());
  }
  CHECK(reader.get("left") == "is gone");
}

TEST_CASE("a store hangs up on a client that does not keep to the protocol", "[collective]") {
  const StoreServer server(kLocal, 0);
  for (const std::string words : {"put a 1\n1", "set a 99999999\n", "get a b\n", "get a 100000\nget a 100000\n"}) {
    INFO(words);
    CHECK(RawClient(server.port(), words).is_hung_up());
  }
}
