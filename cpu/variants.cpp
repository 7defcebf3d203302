// The two rows, and their marks.
#include "variants.hpp"

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

CpuVariants::CpuVariants(QuirkOrigin origin) : origin_(std::move(origin)), quirks_(read_quirks(origin_)) {
  for (const auto& [name, quirk] : quirks_) {
    log(LogLevel::warning, fmt::format("cpu: \"{}\" is disabled: {} (found by `concord doctor`, stored in {}; `concord "
                                       "doctor --forget` removes it)",
                                       name, quirk, file().string()));
  }
}

bool CpuVariants::takes_post_ops(Product product) {
  const std::string_view name = kRows[static_cast<std::size_t>(product)].name;
  const std::lock_guard lock(mutex_);
  if (quirks_.contains(name)) return false;
  ++uses_[std::string(name)];
  return true;
}

std::vector<Variant> CpuVariants::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<Variant> variants;
  for (const Row& row : kRows) {
    const auto quirk = quirks_.find(row.name);
    variants.push_back({std::string(row.name), std::string(row.family), quirk == quirks_.end() ? "" : quirk->second});
  }
  return variants;
}

void CpuVariants::require_known(std::string_view name) const {
  CONCORD_CHECK(std::ranges::find(kRows, name, &Row::name) != kRows.end(), ArgumentError,
                "cpu has no kernel alternative \"{}\"", name);
}

void CpuVariants::prefer(std::string_view name) {
  if (!name.empty()) require_known(name);
}

std::int64_t CpuVariants::uses(std::string_view name) const {
  require_known(name);
  const std::lock_guard lock(mutex_);
  const auto found = uses_.find(name);
  return found == uses_.end() ? 0 : found->second;
}

void CpuVariants::mark(std::string_view name, std::string quirk) {
  require_known(name);
  const std::lock_guard lock(mutex_);
  if (quirk.empty()) {
    quirks_.erase(std::string(name));
  } else {
    quirks_.insert_or_assign(std::string(name), std::move(quirk));
  }
}

std::size_t CpuVariants::forget() {
  const std::size_t marks = std::exchange(quirks_, {}).size();
  store();
  return marks;
}

}  // namespace concord::cpu
