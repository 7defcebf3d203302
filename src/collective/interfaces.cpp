#include "concord/collective/interfaces.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "concord/core/check.hpp"

namespace concord::collective {
namespace {

struct Interface {
  std::string name, address;
  bool is_v4 = false, is_loopback = false;
};

std::string numbers_of(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return text.data();
}

/// Those that are up; an interface with two addresses is there twice. Without link-local addresses of IPv6, which need
/// the interface's name too.
std::vector<Interface> interfaces() {
  ifaddrs* first = nullptr;
  CONCORD_CHECK(::getifaddrs(&first) == 0, IoError, "the network interfaces cannot be listed: {}",
                std::strerror(errno));
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, ::freeifaddrs);
  std::vector<Interface> all;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (family == AF_INET6) {
      const auto* const address = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr)) continue;
    }
    const std::string text =
        numbers_of(one->ifa_addr, family == AF_INET ? socklen_t{sizeof(sockaddr_in)} : socklen_t{sizeof(sockaddr_in6)});
    if (!text.empty()) all.push_back({one->ifa_name, text, family == AF_INET, (one->ifa_flags & IFF_LOOPBACK) != 0});
  }
  std::ranges::stable_sort(all, [](const Interface& a, const Interface& b) { return a.is_v4 && !b.is_v4; });
  return all;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string address_of_interface(const std::string& name) {
  const std::vector<Interface> all = interfaces();
  std::string known;
  for (const Interface& one : all) {
    if (one.name == name || one.address == name) return one.address;
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", one.name, one.address);
  }
  throw IoError(fmt::format("this machine has no network interface \"{}\"; it has {}", name,
                            known.empty() ? "none that is up" : known));
}

std::string only_outer_address() {
  std::vector<std::string> outer;
  for (const Interface& one : interfaces()) {
    if (one.is_v4 && !one.is_loopback) outer.push_back(one.address);
  }
  return outer.size() == 1 ? outer[0] : std::string();
}

std::string own_address_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &first);
  CONCORD_CHECK(error == 0, IoError, "there is no machine \"{}\", where the processes of the training meet: {}", host,
                ::gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(first, ::freeaddrinfo);
  const std::vector<Interface> all = interfaces();
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next) {
    const std::string address = numbers_of(one->ai_addr, one->ai_addrlen);
    if (is_loopback(address)) return address;
    if (std::ranges::any_of(all, [&](const Interface& own) { return own.address == address; })) return address;
  }
  return {};
}

std::string address_to_serve(const std::string& host) {
  const std::string own = own_address_of(host);
  // The name of a machine often stands for its loopback address on itself.
  const bool is_meant_local = host == "localhost" || is_loopback(host);
  return is_loopback(own) && !is_meant_local ? "0.0.0.0" : own;
}

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

void end_when_silent(int socket, std::chrono::duration<double> time) {
  const int seconds = static_cast<int>(std::clamp(time.count(), 2.0, 3600.0));
  const int first = seconds / 2, each = std::max(1, first / 3), milliseconds = seconds * 1000;
  const auto set = [&](int level, int name, int value) { ::setsockopt(socket, level, name, &value, sizeof value); };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, first);
  set(IPPROTO_TCP, TCP_KEEPINTVL, each);
  set(IPPROTO_TCP, TCP_KEEPCNT, first / each);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, milliseconds);  // where an answer is on its way
}

}  // namespace concord::collective
