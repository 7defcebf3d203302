// The order under way, and the counters.
#include "faults/faults.hpp"

#include <atomic>
#include <mutex>

namespace concord::faults {
namespace {

std::array<std::atomic<std::int64_t>, kObjects> references;

std::mutex mutex;  // guards what follows
std::array<std::uint64_t, kKinds> call_counts;
std::optional<Fault> ordered;
bool has_happened = false;
std::string_view function_name;

std::uint64_t count_of(const Fault& fault) {
  if (fault.kind) return call_counts[static_cast<std::size_t>(*fault.kind)];
  std::uint64_t sum = 0;
  for (const std::uint64_t one : call_counts) sum += one;
  return sum;
}

}  // namespace

Ordered::Ordered(const Fault& fault) {
  reset_calls();
  const std::lock_guard lock(mutex);
  ordered = fault;
  has_happened = false;
  function_name = {};
}

Ordered::~Ordered() {
  const std::lock_guard lock(mutex);
  ordered.reset();
}

bool Ordered::happened() const {
  const std::lock_guard lock(mutex);
  return has_happened;
}

std::string_view Ordered::function() const {
  const std::lock_guard lock(mutex);
  return function_name;
}

std::uint64_t calls(Kind kind) {
  const std::lock_guard lock(mutex);
  return call_counts[static_cast<std::size_t>(kind)];
}

void reset_calls() {
  const std::lock_guard lock(mutex);
  call_counts.fill(0);
}

Held held() {
  Held now{};
  for (std::size_t i = 0; i < kObjects; ++i) now[i] = references[i];
  return now;
}

std::optional<int> refused(Kind kind, std::string_view function) {
  const std::lock_guard lock(mutex);
  ++call_counts[static_cast<std::size_t>(kind)];
  if (!ordered) return std::nullopt;
  if (!has_happened) {
    const bool counts = !ordered->kind || *ordered->kind == kind;
    if (!counts || count_of(*ordered) != ordered->nth) return std::nullopt;
    has_happened = true;
    function_name = function;
    return ordered->status;
  }
  return ordered->lasting ? std::optional<int>(ordered->status) : std::nullopt;
}

void count(Object object, int change) { references[static_cast<std::size_t>(object)] += change; }

}  // namespace concord::faults
