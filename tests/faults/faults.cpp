// The order under way, the counters, and who called.
#include "faults/faults.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "faults/symbols.hpp"

// The beginning of the library of the functions that stand in, and the end of its code, by the linker.
extern "C" [[gnu::visibility("hidden")]] const char __ehdr_start, etext;

namespace concord::faults {
namespace {

std::array<std::atomic<std::int64_t>, kObjects> references;

std::mutex mutex;  // guards what follows
std::map<Site, SiteCalls> sites;
std::array<std::uint64_t, kKinds> call_counts;
std::optional<Fault> ordered;
bool has_happened = false;

bool stands_in(const void* address) {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  return place >= reinterpret_cast<std::uintptr_t>(&__ehdr_start) && place < reinterpret_cast<std::uintptr_t>(&etext);
}

/// The callers of the function that stands in, the nearest first.
struct Callers {
  static constexpr std::size_t kMost = 24;
  std::array<void*, kMost> frames{};
  std::span<void* const> outside;

  Callers() {
    const auto count = static_cast<std::size_t>(std::max(backtrace(frames.data(), static_cast<int>(kMost)), 0));
    const auto end = frames.begin() + static_cast<std::ptrdiff_t>(count);
    const auto ours = std::find_if(frames.begin(), end, stands_in);
    outside = {std::find_if_not(ours, end, stands_in), end};
  }
};

/// Where the library lies that an address belongs to. Remembered, since to find it takes longer than many a call.
const void* library_of(const void* address) {
  static std::unordered_map<const void*, const void*> known;
  const auto [place, is_new] = known.try_emplace(address, nullptr);
  Dl_info info{};
  if (is_new && dladdr(address, &info) != 0) place->second = info.dli_fbase;
  return place->second;
}

/// A library that calls itself fails as a whole.
bool is_inside(const Callers& callers, std::string_view function) {
  static std::map<std::string, const void*, std::less<>> libraries;
  auto known = libraries.find(function);
  if (known == libraries.end()) {
    const std::string name(function);
    known = libraries.emplace(name, library_of(dlsym(RTLD_NEXT, name.c_str()))).first;
  }
  return !callers.outside.empty() && library_of(callers.outside.front()) == known->second;
}

/// Who calls, and who calls these: one wrapper serves many. The same in every process of this build.
Site site_of(const Callers& callers, std::string_view function, std::string_view of) {
  constexpr std::size_t kDepth = 3;
  Site hash = std::hash<std::string_view>{}(function) ^ std::hash<std::string_view>{}(of);
  for (void* const frame : callers.outside.first(std::min(kDepth, callers.outside.size()))) {
    const auto offset = static_cast<const char*>(frame) - static_cast<const char*>(library_of(frame));
    hash = (hash ^ static_cast<Site>(offset)) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

Ordered::Ordered(const Fault& fault) {
  reset_calls();
  const std::lock_guard lock(mutex);
  ordered = fault;
  has_happened = false;
}

Ordered::~Ordered() {
  const std::lock_guard lock(mutex);
  ordered.reset();
}

bool Ordered::happened() const {
  const std::lock_guard lock(mutex);
  return has_happened;
}

std::map<Site, SiteCalls> calls() {
  const std::lock_guard lock(mutex);
  return sites;
}

void reset_calls() {
  const std::lock_guard lock(mutex);
  sites.clear();
  call_counts.fill(0);
}

std::string name_at(const void* address) {
  const std::string_view symbol = symbol_at(address);
  if (symbol.empty()) return "an unnamed function";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(symbol.data(), nullptr, nullptr, &status),
                                                         &std::free);
  return name ? name.get() : std::string(symbol);
}

Held held() {
  Held now{};
  for (std::size_t i = 0; i < kObjects; ++i) now[i] = references[i];
  return now;
}

std::optional<int> refused(Kind kind, std::string_view function, std::string_view of) {
  const Callers callers;
  const std::lock_guard lock(mutex);
  if (is_inside(callers, function)) return std::nullopt;
  const Site site = site_of(callers, function, of);
  const auto [place, is_new] = sites.try_emplace(site);
  SiteCalls& here = place->second;
  if (is_new) {
    here.kind = kind;
    here.function = of.empty() ? std::string(function) : std::string(function) + " of " + std::string(of);
    here.from = callers.outside.empty() ? nullptr : callers.outside.front();
  }
  ++here.calls;
  const std::uint64_t of_kind = ++call_counts[static_cast<std::size_t>(kind)];
  if (!ordered) return std::nullopt;
  if (has_happened) return ordered->lasting ? std::optional<int>(ordered->status) : std::nullopt;
  const bool is_due = ordered->site ? *ordered->site == site && here.calls == ordered->nth
                                    : ordered->kind == kind && of_kind == ordered->nth;
  if (!is_due) return std::nullopt;
  has_happened = true;
  return ordered->status;
}

void count(Object object, int change) { references[static_cast<std::size_t>(object)] += change; }

}  // namespace concord::faults
