// Which alternatives are disabled, preferred and used.
#include "concord/opencl/launch/alternatives.hpp"

#include <algorithm>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"

namespace concord::opencl {
OpenClAlternatives::OpenClAlternatives(DenylistOrigin origin, std::function<void()> changed)
    : origin_(std::move(origin)), changed_(std::move(changed)), denylist_(read_denylist(origin_)) {
  for (const auto& [name, reason] : denylist_) {
    log(LogLevel::warning, fmt::format("{}: \"{}\" is disabled: {} (found by `concord doctor`, stored in {}; `concord "
                                       "doctor --forget` removes it)",
                                       origin_.device, name, reason, file().string()));
  }
}

bool OpenClAlternatives::should_use(std::string_view name, bool planned) {
  const bool is_taken = is_enabled(name) && (planned || preferred_ == name);
  if (is_taken) count(name);
  return is_taken;
}

bool OpenClAlternatives::prefers_first(std::string_view first, std::string_view second, bool planned) const {
  if (is_enabled(first) != is_enabled(second)) return is_enabled(first);
  return preferred_ == first || preferred_ == second ? preferred_ == first : planned;
}

bool OpenClAlternatives::should_use_first(std::string_view first, std::string_view second, bool planned) {
  const bool is_first = prefers_first(first, second, planned);
  count(is_first ? first : second);
  return is_first;
}

std::optional<std::string> OpenClAlternatives::preferred(std::string_view begin) const {
  if (!preferred_.starts_with(begin) || !is_enabled(preferred_)) return std::nullopt;
  return preferred_.substr(begin.size());
}

std::vector<KernelAlternative> OpenClAlternatives::list() const {
  std::vector<KernelAlternative> alternatives;
  for (Name& one : names_()) {
    const auto reason = denylist_.find(one.name);
    alternatives.push_back(
        {std::move(one.name), std::string(one.family), reason == denylist_.end() ? "" : reason->second});
  }
  return alternatives;
}

void OpenClAlternatives::require_known(std::string_view name) const {
  const std::vector<KernelAlternative> all = list();
  // A disabled alternative may be missing from the list, for example the panels of a device that no longer uses kernels
  // for CPUs.
  const bool is_known = denylist_.contains(name) || std::ranges::find(all, name, &KernelAlternative::name) != all.end();
  CONCORD_CHECK(is_known, ArgumentError, "{} has no kernel alternative \"{}\"", origin_.device, name);
}

void OpenClAlternatives::prefer(std::string_view name) {
  if (!name.empty()) require_known(name);
  preferred_ = name;
  changed_();
}

std::int64_t OpenClAlternatives::uses(std::string_view name) const {
  require_known(name);
  const auto found = uses_.find(name);
  return found == uses_.end() ? 0 : found->second;
}

void OpenClAlternatives::disable(std::string_view name, std::string reason) {
  require_known(name);
  if (reason.empty()) {
    denylist_.erase(std::string(name));
  } else {
    denylist_.insert_or_assign(std::string(name), std::move(reason));
  }
  changed_();
}

std::filesystem::path OpenClAlternatives::file() const { return denylist_file(origin_); }

void OpenClAlternatives::store() const { write_denylist(origin_, denylist_); }

std::size_t OpenClAlternatives::forget() {
  const std::size_t disabled = std::exchange(denylist_, {}).size();
  changed_();
  store();
  return disabled;
}

}  // namespace concord::opencl
