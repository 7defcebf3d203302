// The order of devices, selectors over a list of them, and their texts.
#include "concord/device/selection.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "concord/core/check.hpp"
#include "concord/core/launched_rank.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"

namespace concord {
namespace {

constexpr std::string_view kPrefix = "opencl:";

bool contains(std::string_view text, std::string_view lower_part) {
  return lower(text).find(lower_part) != std::string::npos;
}

bool is_opencl(const DeviceInfo& info) { return info.backend == "opencl"; }

int rank_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::gpu: return 2;
    case DeviceKind::accelerator: return 1;
    case DeviceKind::cpu: break;
  }
  return 0;
}

std::uint64_t speed_of(const DeviceInfo& info) { return std::uint64_t{info.compute_units} * info.clock_mhz; }

/// Whether `a` is the better device; never true both ways, so that equal ones keep their order.
bool better(const DeviceInfo& a, const DeviceInfo& b) {
  if (a.kind != b.kind) return rank_of(a.kind) > rank_of(b.kind);
  return speed_of(a) > speed_of(b);
}

bool alike(const DeviceInfo& a, const DeviceInfo& b) {
  return a.name == b.name && a.vendor == b.vendor && a.platform == b.platform && a.driver == b.driver &&
         a.memory == b.memory && speed_of(a) == speed_of(b);
}

std::vector<std::size_t> places_where(std::span<const DeviceInfo> infos, auto&& predicate) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (predicate(infos[i])) places.push_back(i);
  }
  std::ranges::stable_sort(places, [&](std::size_t a, std::size_t b) { return better(infos[a], infos[b]); });
  return places;
}

/// Matches of the part after "opencl:".
std::vector<std::size_t> opencl_matches(std::span<const DeviceInfo> infos, std::string_view part) {
  if (const auto number = number_in_text<std::size_t>(part)) {
    const std::string id = fmt::format("opencl:{}", *number);
    return places_where(infos, [&](const DeviceInfo& info) { return info.id == id; });
  }
  if (part == "gpu" || part == "cpu" || part == "accelerator") {
    return places_where(infos, [&](const DeviceInfo& info) { return is_opencl(info) && name_of(info.kind) == part; });
  }
  return places_where(infos, [&](const DeviceInfo& info) {
    return is_opencl(info) &&
           (contains(info.vendor, part) || contains(info.platform, part) || contains(info.name, part));
  });
}

/// How many devices of `order` are of the kind of the first.
std::ptrdiff_t of_best_kind(std::span<const DeviceInfo> infos, const std::vector<std::size_t>& order) {
  return std::ranges::count_if(order, [&](std::size_t place) { return infos[place].kind == infos[order[0]].kind; });
}

/// Whether this process may see fewer devices than the others of its machine: Slurm's --gpus-per-task shows each its
/// own.
bool are_devices_hidden() {
  constexpr std::array kVariables{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
                                  "ZE_AFFINITY_MASK"};
  return std::ranges::any_of(kVariables, [](const char* name) { return environment(name).has_value(); });
}

}  // namespace

std::string_view name_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu: return "cpu";
    case DeviceKind::gpu: return "gpu";
    case DeviceKind::accelerator: return "accelerator";
  }
  return "unknown";
}

std::string describe(const DeviceInfo& info) {
  return fmt::format("{}  {} ({}, {})", info.id, info.name, name_of(info.kind), info.platform);
}

std::string_view driver_hint() {
  return "OpenCL drivers on Debian and Ubuntu: pocl-opencl-icd (any CPU), intel-opencl-icd (Intel GPU), "
         "mesa-opencl-icd (AMD and others), libnvidia-compute or nvidia-opencl-icd (NVIDIA), rocm-opencl-icd (AMD's "
         "ROCm). `concord doctor` lists the drivers found and the reasons why they have no device.";
}

std::string listing(std::span<const DeviceInfo> infos) {
  if (infos.empty()) return "\nNo device was found.";
  std::string out = "\nDevices of this machine:";
  for (const DeviceInfo& info : infos) out += "\n  " + describe(info);
  return out;
}

std::vector<std::size_t> auto_order(std::span<const DeviceInfo> infos) {
  const bool has_onednn = std::ranges::any_of(infos, [](const DeviceInfo& info) { return !is_opencl(info); });
  return places_where(
      infos, [&](const DeviceInfo& info) { return info.kind != DeviceKind::cpu || !is_opencl(info) || !has_onednn; });
}

std::vector<std::size_t> auto_order_of_rank(std::span<const DeviceInfo> infos, int local_rank) {
  std::vector<std::size_t> order = auto_order(infos);
  if (order.empty()) return order;
  const std::ptrdiff_t best = of_best_kind(infos, order);
  std::rotate(order.begin(), order.begin() + local_rank % best, order.begin() + best);
  return order;
}

std::vector<std::size_t> auto_order_of_process(std::span<const DeviceInfo> infos, std::string_view selector) {
  const bool is_named = !selector.empty() || environment("CONCORD_DEVICE");
  const std::optional<LaunchedRank> own = is_named ? std::nullopt : launched_rank();
  if (!own) return auto_order(infos);
  std::vector<std::size_t> order = auto_order_of_rank(infos, own->local_rank);
  if (order.empty() || infos[order[0]].kind == DeviceKind::cpu || are_devices_hidden()) return order;
  if (const std::ptrdiff_t best = of_best_kind(infos, order); own->local_rank >= best) {
    log(LogLevel::warning,
        fmt::format("rank {} of this machine shares {} with rank {}: there are more ranks than {}s", own->local_rank,
                    infos[order[0]].id, own->local_rank % best, name_of(infos[order[0]].kind)));
  }
  return order;
}

std::string wanted_device(std::string_view selector) {
  return selector.empty() ? environment("CONCORD_DEVICE").value_or("auto") : std::string(selector);
}

std::string selector_error(std::string_view selector) {
  const std::string wanted = lower(selector);
  const bool is_whole = wanted == "auto" || wanted == "cpu" || wanted == "opencl";
  if (is_whole || (wanted.starts_with(kPrefix) && wanted.size() > kPrefix.size())) return {};
  return fmt::format(
      "\"{}\" is not a device selector; use \"auto\", \"cpu\", \"opencl\", \"opencl:1\" (index), \"opencl:nvidia\" "
      "(part of vendor, platform or name) or \"opencl:gpu\" (kind)",
      selector);
}

namespace {

/// The best first. Throws where there is none.
std::vector<std::size_t> matches_of(std::span<const DeviceInfo> infos, std::string_view selector) {
  const std::string given = wanted_device(selector), wanted = lower(given), error = selector_error(given);
  CONCORD_CHECK(error.empty(), ArgumentError, "{}{}.{}", selector.empty() ? "CONCORD_DEVICE: " : "", error,
                listing(infos));
  std::vector<std::size_t> matches;
  if (wanted == "auto") {
    matches = auto_order(infos);
    if (!matches.empty()) return {matches.front()};
  } else if (wanted == "cpu") {
    matches = places_where(infos, [](const DeviceInfo& info) { return info.id == "cpu"; });
    CONCORD_CHECK(
        !matches.empty(), DeviceError,
        "the oneDNN CPU backend is not part of this build (CONCORD_CPU=OFF); \"opencl:cpu\" is the CPU through "
        "OpenCL.{}",
        listing(infos));
  } else if (wanted == "opencl") {
    matches = places_where(infos, is_opencl);
    if (!matches.empty()) return {matches.front()};
  } else {
    matches = opencl_matches(infos, std::string_view(wanted).substr(kPrefix.size()));
  }
  CONCORD_CHECK(!matches.empty(), DeviceError, "no device matches \"{}\".{}\n{}", given, listing(infos), driver_hint());
  return matches;
}

}  // namespace

std::size_t select_device(std::span<const DeviceInfo> infos, std::string_view selector) {
  const std::vector<std::size_t> matches = matches_of(infos, selector);
  const DeviceInfo& first = infos[matches.front()];
  if (std::ranges::all_of(matches, [&](std::size_t place) { return alike(infos[place], first); })) {
    return matches.front();
  }
  std::string several;
  for (const std::size_t place : matches) several += "\n  " + describe(infos[place]);
  throw DeviceError(fmt::format("\"{}\" matches several devices; name one by its index or a longer part:{}",
                                wanted_device(selector), several));
}

std::vector<std::size_t> select_devices(std::span<const DeviceInfo> infos, std::span<const std::string> selectors) {
  std::vector<std::size_t> selected;
  for (const std::string& selector : selectors) {
    std::vector<std::size_t> matches;
    if (lower(selector) == "all") {
      matches = auto_order(infos);
      if (!matches.empty() && infos[matches.front()].kind != DeviceKind::cpu) {
        std::erase_if(matches, [&](std::size_t place) { return infos[place].kind == DeviceKind::cpu; });
      }
    } else {
      matches = matches_of(infos, selector);
    }
    std::ranges::sort(matches);
    for (const std::size_t place : matches) {
      CONCORD_CHECK(std::ranges::find(selected, place) == selected.end(), ArgumentError, "\"{}\" names {} twice",
                    selector, infos[place].id);
      selected.push_back(place);
    }
  }
  return selected;
}

}  // namespace concord
