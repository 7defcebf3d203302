// The text of CONCORD_DEBUG, and its values.
#include "concord/core/debug_options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "concord/core/check.hpp"
#include "concord/core/nearest_name.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"

namespace concord {
namespace {

constexpr std::array<std::string_view, 26> kKeys{
    // which kernels compute
    "batch_norm", "conv", "gemm", "kernels", "memories", "plan_as", "portable", "storage", "tuning",
    // where sources are read from and written to, and who compiles them
    "build_processes", "kernel_dir", "source_dir",
    // what a device is held to
    "limit.allocation", "limit.compute_units", "limit.extensions", "limit.fp16", "limit.fp64", "limit.images",
    "limit.local_memory", "limit.memory", "limit.subgroups", "limit.work_group",
    // what is measured and filled
    "fill_memory", "hwmon", "nvml", "powercap"};

void check_key(std::string_view key) {
  if (std::ranges::find(kKeys, key) != kKeys.end()) return;
  const auto nearest = nearest_name(key, std::vector<std::string>(kKeys.begin(), kKeys.end()));
  throw ArgumentError(fmt::format("CONCORD_DEBUG has no key \"{}\"{} The keys are {}", key,
                                  nearest ? fmt::format("; did you mean {}?", *nearest) : ".", fmt::join(kKeys, ", ")));
}

}  // namespace

std::span<const std::string_view> debug_keys() { return kKeys; }

void check_debug_options() { static_cast<void>(debug_option({})); }

std::optional<std::string> debug_option(std::string_view key) {
  std::optional<std::string> value;
  for (const std::string& pair : split(environment("CONCORD_DEBUG").value_or(""), ',')) {
    const std::size_t sign = pair.find('=');
    CONCORD_CHECK(sign != std::string::npos && sign + 1 < pair.size(), ArgumentError,
                  "CONCORD_DEBUG: \"{}\" is not KEY=VALUE", pair);
    const std::string_view name = std::string_view(pair).substr(0, sign);
    check_key(name);
    if (name == key) value = pair.substr(sign + 1);
  }
  return value;
}

std::optional<std::string> debug_choice(std::string_view key, std::initializer_list<std::string_view> choices) {
  std::optional<std::string> value = debug_option(key);
  CONCORD_CHECK(!value || std::ranges::find(choices, *value) != choices.end(), ArgumentError,
                "CONCORD_DEBUG: {} is \"{}\"; it must be {}", key, *value, fmt::join(choices, ", "));
  return value;
}

bool debug_flag(std::string_view key, bool otherwise) {
  const std::optional<std::string> value = debug_choice(key, {"0", "1"});
  return value ? *value == "1" : otherwise;
}

std::optional<std::uint64_t> debug_number(std::string_view key, std::uint64_t least, std::uint64_t most) {
  const std::optional<std::string> value = debug_option(key);
  if (!value) return std::nullopt;
  const auto number = number_in_text<std::uint64_t>(*value);
  CONCORD_CHECK(number && *number >= least && *number <= most, ArgumentError,
                "CONCORD_DEBUG: {} is \"{}\"; it must be an integer from {} to {}", key, *value, least, most);
  return number;
}

}  // namespace concord
