// The list of variants, and who gets which.
#include "concord/opencl/variants.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/opencl/context.hpp"
#include "concord/opencl/discovery.hpp"
#include "concord/opencl/gemm.hpp"
#include "concord/opencl/wave_units.hpp"

namespace concord::opencl {
namespace {

struct Row {
  std::string_view name, family;
  bool (*is_there)(const Context&);
};

bool on_any(const Context&) { return true; }
bool on_gpus(const Context& context) { return !context.limits().is_cpu; }
bool on_matrix_units(const Context& context) { return context.capability().has_matrix_units(); }
bool on_hopper(const Context& context) { return context.capability().is_hopper(); }
bool in_groups(const Context& context) { return context.limits().max_work_group > 1; }
/// Where the user did not choose.
bool made_for_cpu(const Context& context) { return !environment("CONCORD_KERNELS") && is_cpu(context.device()); }
bool made_for_gpu(const Context& context) { return !environment("CONCORD_KERNELS") && !is_cpu(context.device()); }

/// The kinds last: what a narrower row explains is not theirs.
constexpr std::array<Row, 11> kRows{{{variant::kDepthwise, "depthwise", on_any},
                                     {variant::kStrips, "depthwise", on_gpus},
                                     {variant::kPhases, "convolution", on_any},
                                     {variant::kWinograd, "convolution", on_any},
                                     {variant::kChannelsLast, "convolution", on_hopper},
                                     {variant::kAttentionMma, "attention", on_matrix_units},
                                     {variant::kBatchNormGroups, "batch_norm", in_groups},
                                     {variant::kBatchNormRuns, "batch_norm", on_any},
                                     {variant::kRecurrentStep, "recurrent", on_gpus},
                                     {variant::kForCpus, "all", made_for_cpu},
                                     {variant::kForGpus, "all", made_for_gpu}}};

/// "panel" runs on any device, and is one of the ways of CPUs alone.
bool is_there(const Context& context, std::string_view product) {
  if (product == "reference") return false;  // nothing is plainer
  if (product == "panel") return context.limits().is_cpu;
  if (product == "mma") return on_matrix_units(context);
  if (product == "wave") return context.wave_units() != WaveUnits::none;
  return product == "tiled" || product == "clblast" || on_hopper(context);
}

QuirkOrigin origin_of(const Context& context) { return {context.name(), context.device().driver_version()}; }

}  // namespace

KernelVariants::KernelVariants(const Context& context, std::function<void()> changed)
    : context_(context), changed_(std::move(changed)), quirks_(read_quirks(origin_of(context))) {
  for (const auto& [name, quirk] : quirks_) {
    log(LogLevel::warning,
        fmt::format("{}: \"{}\" is not used: {} (found by `concord doctor`, kept in {}; `concord doctor --forget` "
                    "removes it)",
                    context_.name(), name, quirk, file().string()));
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
  const auto add = [&](std::string name, std::string_view family) {
    const auto quirk = quirks_.find(name);
    variants.push_back({std::move(name), std::string(family), quirk == quirks_.end() ? "" : quirk->second});
  };
  for (const GemmImplementation& one : gemm_implementations()) {
    if (is_there(context_, one.name)) add(std::string(variant::kProduct) + std::string(one.name), "product");
  }
  for (const Row& row : kRows) {
    if (row.is_there(context_)) add(std::string(row.name), row.family);
  }
  return variants;
}

void KernelVariants::require_known(std::string_view name) const {
  const std::vector<Variant> all = list();
  // What is marked may have gone with the mark: the panels of a device that no longer takes kernels for CPUs.
  const bool is_known = quirks_.contains(name) || std::ranges::find(all, name, &Variant::name) != all.end();
  CONCORD_CHECK(is_known, ArgumentError, "{} has no variant \"{}\"", context_.name(), name);
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

std::filesystem::path KernelVariants::file() const { return quirk_file(origin_of(context_)); }

void KernelVariants::store() const { write_quirks(origin_of(context_), quirks_); }

std::size_t KernelVariants::forget() {
  const std::size_t marks = std::exchange(quirks_, {}).size();
  changed_();
  store();
  return marks;
}

}  // namespace concord::opencl
