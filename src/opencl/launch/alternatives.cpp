// Which variants are marked, preferred and used.
#include "concord/opencl/launch/alternatives.hpp"

#include <algorithm>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"

namespace concord::opencl {
KernelVariants::KernelVariants(QuirkOrigin origin, std::function<void()> changed)
    : origin_(std::move(origin)), changed_(std::move(changed)), quirks_(read_quirks(origin_)) {
  for (const auto& [name, quirk] : quirks_) {
    log(LogLevel::warning, fmt::format("{}: \"{}\" is disabled: {} (found by `concord doctor`, stored in {}; `concord "
                                       "doctor --forget` removes it)",
                                       origin_.device, name, quirk, file().string()));
  }
}

bool KernelVariants::takes(std::string_view name, bool planned) {
  const bool is_taken = may(name) && (planned || preferred_ == name);
  if (is_taken) count(name);
  return is_taken;
}

bool KernelVariants::prefers_first(std::string_view first, std::string_view second, bool planned) const {
  if (may(first) != may(second)) return may(first);
  return preferred_ == first || preferred_ == second ? preferred_ == first : planned;
}

bool KernelVariants::takes_first(std::string_view first, std::string_view second, bool planned) {
  const bool is_first = prefers_first(first, second, planned);
  count(is_first ? first : second);
  return is_first;
}

std::optional<std::string> KernelVariants::preferred(std::string_view begin) const {
  if (!preferred_.starts_with(begin) || !may(preferred_)) return std::nullopt;
  return preferred_.substr(begin.size());
}

std::vector<Variant> KernelVariants::list() const {
  std::vector<Variant> variants;
  for (Name& one : names_()) {
    const auto quirk = quirks_.find(one.name);
    variants.push_back({std::move(one.name), std::string(one.family), quirk == quirks_.end() ? "" : quirk->second});
  }
  return variants;
}

void KernelVariants::require_known(std::string_view name) const {
  const std::vector<Variant> all = list();
  // What is marked may have gone with the mark: the panels of a device that no longer takes kernels for CPUs.
  const bool is_known = quirks_.contains(name) || std::ranges::find(all, name, &Variant::name) != all.end();
  CONCORD_CHECK(is_known, ArgumentError, "{} has no kernel alternative \"{}\"", origin_.device, name);
}

void KernelVariants::prefer(std::string_view name) {
  if (!name.empty()) require_known(name);
  preferred_ = name;
  changed_();
}

std::int64_t KernelVariants::uses(std::string_view name) const {
  require_known(name);
  const auto found = uses_.find(name);
  return found == uses_.end() ? 0 : found->second;
}

void KernelVariants::mark(std::string_view name, std::string quirk) {
  require_known(name);
  if (quirk.empty()) {
    quirks_.erase(std::string(name));
  } else {
    quirks_.insert_or_assign(std::string(name), std::move(quirk));
  }
  changed_();
}

std::filesystem::path KernelVariants::file() const { return quirk_file(origin_); }

void KernelVariants::store() const { write_quirks(origin_, quirks_); }

std::size_t KernelVariants::forget() {
  const std::size_t marks = std::exchange(quirks_, {}).size();
  changed_();
  store();
  return marks;
}

}  // namespace concord::opencl
