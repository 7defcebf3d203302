// TCP ports for processes of a test that meet.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "concord_test.hpp"

namespace concord::test {

/// A TCP port that is open while the object lives.
class OpenPort {
 public:
  OpenPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof place;
    REQUIRE(::bind(socket_, reinterpret_cast<const sockaddr*>(&place), size) == 0);
    REQUIRE(::listen(socket_, 1) == 0);
    REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&place), &size) == 0);
    number_ = ntohs(place.sin_port);
  }
  OpenPort(const OpenPort&) = delete;
  OpenPort& operator=(const OpenPort&) = delete;
  ~OpenPort() { ::close(socket_); }
  [[nodiscard]] std::string number() const { return std::to_string(number_); }

 private:
  int socket_;
  int number_ = 0;
};

/// A port that was free a moment ago.
inline std::string free_port() { return OpenPort().number(); }

}  // namespace concord::test
