// Read before main: drivers have handlers of their own, which they set when they are loaded.
#include "concord/core/ignored_signals.hpp"

#include <signal.h>

#include <algorithm>
#include <array>

namespace concord {
namespace {

struct Start {
  int signal;
  bool is_ignored;
};

Start start_of(int signal) {
  struct sigaction now = {};
  ::sigaction(signal, nullptr, &now);
  return {signal, now.sa_handler == SIG_IGN};
}

const std::array kStarts{start_of(SIGINT), start_of(SIGTERM), start_of(SIGHUP)};

}  // namespace

bool was_ignored_at_start(int signal) {
  return std::ranges::any_of(kStarts, [&](const Start& one) { return one.signal == signal && one.is_ignored; });
}

}  // namespace concord
