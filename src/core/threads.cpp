// The number of threads, from the program or the environment.
#include "concord/core/threads.hpp"

#include <algorithm>
#include <atomic>

#include "concord/core/check.hpp"
#include "concord/core/control_groups.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"

namespace concord {
namespace {

constexpr int kMost = 4096;

std::atomic<int> wanted{0};  // 0: not said

int from_environment() {
  if (const auto text = environment("CONCORD_NUM_THREADS")) {
    const auto number = number_in_text<int>(*text);
    CONCORD_CHECK(number && *number >= 1 && *number <= kMost, ArgumentError,
                  "CONCORD_NUM_THREADS is \"{}\", which is not a number of threads from 1 to {}", *text, kMost);
    return *number;
  }
  // OpenMP's may be a list, a number a level of nesting; and what it cannot read it ignores.
  const std::string list = environment("OMP_NUM_THREADS").value_or("");
  const auto number = number_in_text<int>(std::string_view(list).substr(0, list.find(',')));
  return number && *number >= 1 ? std::min(*number, kMost) : usable_processors();
}

}  // namespace

int num_threads() {
  const int said = wanted.load(std::memory_order_relaxed);
  if (said > 0) return said;
  static const int given = from_environment();
  return given;
}

void set_num_threads(int threads) {
  CONCORD_CHECK(threads >= 1 && threads <= kMost, ArgumentError, "set_num_threads: {} is not a number from 1 to {}",
                threads, kMost);
  wanted.store(threads, std::memory_order_relaxed);
}

}  // namespace concord
