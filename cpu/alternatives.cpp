// The two alternatives of this backend.
#include "alternatives.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"

namespace concord::cpu {
namespace {

struct Row {
  std::string_view name, family;
};
/// By the number of their Product.
constexpr std::array<Row, 2> kRows{
    {{"product post-operations", "product"}, {"convolution post-operations", "convolution"}}};

}  // namespace

CpuAlternatives::CpuAlternatives(DenylistOrigin origin)
    : origin_(std::move(origin)), denylist_(read_denylist(origin_)) {
  for (const auto& [name, reason] : denylist_) {
    log(LogLevel::warning, fmt::format("cpu: \"{}\" is disabled: {} (found by `concord doctor`, stored in {}; `concord "
                                       "doctor --forget` removes it)",
                                       name, reason, file().string()));
  }
}

bool CpuAlternatives::should_use_post_ops(Product product) {
  const std::string_view name = kRows[static_cast<std::size_t>(product)].name;
  const std::lock_guard lock(mutex_);
  if (denylist_.contains(name)) return false;
  ++uses_[std::string(name)];
  return true;
}

std::vector<KernelAlternative> CpuAlternatives::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<KernelAlternative> alternatives;
  for (const Row& row : kRows) {
    const auto reason = denylist_.find(row.name);
    alternatives.push_back(
        {std::string(row.name), std::string(row.family), reason == denylist_.end() ? "" : reason->second});
  }
  return alternatives;
}

void CpuAlternatives::require_known(std::string_view name) const {
  CONCORD_CHECK(std::ranges::find(kRows, name, &Row::name) != kRows.end(), ArgumentError,
                "cpu has no kernel alternative \"{}\"", name);
}

void CpuAlternatives::prefer(std::string_view name) {
  if (!name.empty()) require_known(name);
}

std::int64_t CpuAlternatives::uses(std::string_view name) const {
  require_known(name);
  const std::lock_guard lock(mutex_);
  const auto found = uses_.find(name);
  return found == uses_.end() ? 0 : found->second;
}

void CpuAlternatives::disable(std::string_view name, std::string reason) {
  require_known(name);
  const std::lock_guard lock(mutex_);
  if (reason.empty()) {
    denylist_.erase(std::string(name));
  } else {
    denylist_.insert_or_assign(std::string(name), std::move(reason));
  }
}

void CpuAlternatives::store() const {
  const std::lock_guard lock(mutex_);
  write_denylist(origin_, denylist_);
}

std::size_t CpuAlternatives::forget() {
  const std::lock_guard lock(mutex_);
  const std::size_t disabled = std::exchange(denylist_, {}).size();
  write_denylist(origin_, denylist_);
  return disabled;
}

}  // namespace concord::cpu
