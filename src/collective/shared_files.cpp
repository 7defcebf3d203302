// Each rank listens on a Unix socket, and connects to the ranks before it; the descriptors go through these connections
// (SCM_RIGHTS).
#include "concord/collective/shared_files.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <utility>

#include "concord/collective/running_time.hpp"
#include "concord/core/check.hpp"
#include "concord/core/open_file.hpp"

namespace concord::collective {
namespace {

[[noreturn]] void fail(const char* what) {
  throw IoError(fmt::format("the ranks of this machine cannot share memory: {}: {}", what, std::strerror(errno)));
}

/// Of an abstract socket, which no file stands for.
using Name = std::array<char, 48>;

std::pair<sockaddr_un, socklen_t> address_of(const Name& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

Name new_name() {
  std::random_device random;
  Name name{};
  fmt::format_to_n(name.data(), name.size() - 1, "concord-{}-{:08x}{:08x}", ::getpid(), random(), random());
  return name;
}

/// Sends a descriptor and the number of the rank that it comes from.
void send_file(int socket, int file, int rank) {
  iovec bytes{&rank, sizeof rank};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  if (::sendmsg(socket, &message, MSG_NOSIGNAL) != sizeof rank) fail("sendmsg");
}

void wait_until_readable(int socket) {
  pollfd ready{socket, POLLIN, 0};
  constexpr int kLookMilliseconds = 100;
  const std::chrono::duration<double> deadline(deadline_seconds());
  RunningTime waited;
  int found = 0;
  do {
    found = ::poll(&ready, 1, kLookMilliseconds);
  } while ((found == 0 || (found < 0 && errno == EINTR)) && waited.look() <= deadline);
  CONCORD_CHECK(found > 0, RankLost, "a rank of this machine did not share its memory within {:g} s",
                deadline_seconds());
}

std::pair<int, OpenFile> receive_file(int socket) {
  int rank = -1, file = -1;
  iovec bytes{&rank, sizeof rank};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  wait_until_readable(socket);
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof rank) fail("recvmsg");
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) fail("no descriptor came");
  std::memcpy(&file, CMSG_DATA(header), sizeof file);
  return {rank, OpenFile(file)};
}

bool is_same_user(int socket) {
  ucred other{};
  socklen_t size = sizeof other;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == ::geteuid();
}

}  // namespace

std::vector<int> share_files(Group& group, int file) {
  const int ranks = group.size(), own = group.rank();
  std::vector<Name> names(static_cast<std::size_t>(ranks));
  names[static_cast<std::size_t>(own)] = new_name();
  const OpenFile listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto [own_address, own_size] = address_of(names[static_cast<std::size_t>(own)]);
  if (listener.get() < 0 || ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&own_address), own_size) != 0 ||
      ::listen(listener.get(), ranks) != 0) {
    fail("no socket");
  }
  group.all_gather(std::as_writable_bytes(std::span(names)), sizeof(Name));
  std::vector<OpenFile> files(static_cast<std::size_t>(ranks));
  std::vector<OpenFile> connections;  // open until all ranks have read
  const auto exchange = [&](OpenFile connection) {
    send_file(connection.get(), file, own);
    auto [rank, received] = receive_file(connection.get());
    CONCORD_CHECK(rank >= 0 && rank < ranks && rank != own, IoError, "a process that is no rank shared a file");
    files[static_cast<std::size_t>(rank)] = std::move(received);
    connections.push_back(std::move(connection));
  };
  for (int before = 0; before < own; ++before) {
    OpenFile connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto [address, size] = address_of(names[static_cast<std::size_t>(before)]);
    if (connection.get() < 0 || ::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
      fail("connect");
    }
    exchange(std::move(connection));
  }
  for (int after = own + 1; after < ranks;) {
    wait_until_readable(listener.get());
    OpenFile connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.get() < 0) fail("accept");
    if (!is_same_user(connection.get())) continue;
    exchange(std::move(connection));
    ++after;
  }
  group.barrier();
  std::vector<int> shared;
  for (OpenFile& one : files) shared.push_back(one.release());
  return shared;
}

}  // namespace concord::collective
