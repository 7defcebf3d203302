// Device::open and Device::list over the backends of this build.
#include "concord/device/registry.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "concord/core/check.hpp"
#include "concord/core/debug_options.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/core/launched_rank.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"

namespace concord {
namespace {

constexpr std::string_view kDriverHint =
    "OpenCL drivers on Debian and Ubuntu: pocl-opencl-icd (any CPU), intel-opencl-icd (Intel GPU), mesa-opencl-icd "
    "(AMD and others), libnvidia-compute or nvidia-opencl-icd (NVIDIA), rocm-opencl-icd (AMD's ROCm). `concord doctor` "
    "lists the drivers found and the reasons why they have no device.";

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

std::string listing(std::span<const DeviceInfo> infos) {
  if (infos.empty()) return "\nNo device was found.";
  std::string out = "\nDevices of this machine:";
  for (const DeviceInfo& info : infos) out += "\n  " + describe(info);
  return out;
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

DevicePtr open_listed(const DeviceInfo& info) {
#ifdef CONCORD_WITH_OPENCL
  if (is_opencl(info))
    return opencl::open_device(number_in_text<std::size_t>(std::string_view(info.id).substr(7)).value());
#endif
#ifdef CONCORD_WITH_CPU
  if (info.id == "cpu") return cpu::open_device(0);
#endif
  throw DeviceError(fmt::format("{} belongs to a backend that is not part of this build", describe(info)));
}

// A GPU that is listed but does not open (a driver without its kernel module) must not keep "auto" from working.
DevicePtr open_first_usable(std::span<const DeviceInfo> infos, const std::vector<std::size_t>& order) {
  CONCORD_CHECK(!order.empty(), DeviceError, "\"auto\" found no device to compute on.{}\n{}", listing(infos),
                kDriverHint);
  for (const std::size_t place : order) {
    const DeviceInfo& info = infos[place];
    try {
      DevicePtr device = open_listed(info);
      const std::string_view why = info.kind == DeviceKind::cpu ? " (no usable GPU or accelerator)" : "";
      log(LogLevel::info, fmt::format("device: {}{}", describe(info), why));
      return device;
    } catch (const DeviceError& error) {
      if (place == order.back()) throw;
      log(LogLevel::warning, fmt::format("{} cannot be used, trying the next: {}", describe(info), error.what()));
    }
  }
  return nullptr;
}

/// What is left out is added to `skipped`.
std::vector<DeviceInfo> list_all([[maybe_unused]] std::vector<std::string>* skipped) {
  std::vector<DeviceInfo> infos;
#ifdef CONCORD_WITH_CPU
  for (DeviceInfo& info : cpu::list_devices()) infos.push_back(std::move(info));
#endif
#ifdef CONCORD_WITH_OPENCL
  for (DeviceInfo& info : opencl::list_devices(skipped)) infos.push_back(std::move(info));
#endif
  return infos;
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

std::string_view driver_hint() { return kDriverHint; }

std::string_view driver_needs() {
  return "PoCL needs /sys, and a folder that it can write to (HOME, or POCL_CACHE_DIR); a GPU's driver needs its "
         "kernel module, of the same version, and permission to open its device files";
}

std::string idle_platforms_hint() {
  std::string hint;
  for (const std::string& name : idle_platforms()) {
    hint += fmt::format("OpenCL platform \"{}\" has no device. {}\n", name, driver_needs());
  }
  return hint;
}

bool has_opencl() {
#ifdef CONCORD_WITH_OPENCL
  return true;
#else
  return false;
#endif
}

std::optional<int> serve_as_builder([[maybe_unused]] std::span<const char* const> arguments) {
#ifdef CONCORD_WITH_OPENCL
  if (arguments.size() == 2 && std::string_view(arguments[1]) == "--build-programs") return opencl::build_programs();
#endif
  return std::nullopt;
}

std::vector<std::string> idle_platforms() {
#ifdef CONCORD_WITH_OPENCL
  return opencl::idle_platforms();
#else
  return {};
#endif
}

std::optional<LibraryVersions> onednn_versions() {
#ifdef CONCORD_WITH_CPU
  return cpu::onednn_versions();
#else
  return std::nullopt;
#endif
}

std::vector<std::size_t> auto_order(std::span<const DeviceInfo> infos) {
  const bool has_onednn = std::ranges::any_of(infos, [](const DeviceInfo& info) { return !is_opencl(info); });
  return places_where(
      infos, [&](const DeviceInfo& info) { return info.kind != DeviceKind::cpu || !is_opencl(info) || !has_onednn; });
}

namespace {

/// How many devices of `order` are of the kind of the first.
std::ptrdiff_t of_best_kind(std::span<const DeviceInfo> infos, const std::vector<std::size_t>& order) {
  return std::ranges::count_if(order, [&](std::size_t place) { return infos[place].kind == infos[order[0]].kind; });
}

}  // namespace

std::vector<std::size_t> auto_order_of_rank(std::span<const DeviceInfo> infos, int local_rank) {
  std::vector<std::size_t> order = auto_order(infos);
  if (order.empty()) return order;
  const std::ptrdiff_t best = of_best_kind(infos, order);
  std::rotate(order.begin(), order.begin() + local_rank % best, order.begin() + best);
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
  CONCORD_CHECK(!matches.empty(), DeviceError, "no device matches \"{}\".{}\n{}", given, listing(infos), kDriverHint);
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

std::vector<DeviceInfo> Device::list() {
  check_debug_options();
  return with_host_memory("listing devices", [] { return list_all(nullptr); });
}

bool selects_cpu(std::string_view selector) {
#ifdef CONCORD_WITH_CPU
  return lower(wanted_device(selector)) == "cpu";
#else
  static_cast<void>(selector);
  return false;
#endif
}

namespace {

/// Whether this process may see fewer devices than the others of its machine: Slurm's --gpus-per-task shows each its
/// own.
bool are_devices_hidden() {
  constexpr std::array kVariables{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
                                  "ZE_AFFINITY_MASK"};
  return std::ranges::any_of(kVariables, [](const char* name) { return environment(name).has_value(); });
}

/// What "auto" tries. A rank whose launcher gave it no device, unlike `concord launch`, takes its own of those of this
/// machine.
std::vector<std::size_t> order_of(std::span<const DeviceInfo> infos, std::string_view selector) {
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

DevicePtr open_selected(std::string_view selector) {
#ifdef CONCORD_WITH_CPU
  // To load drivers takes tens of milliseconds.
  if (selects_cpu(selector)) return cpu::open_device(0);
#endif
  std::vector<std::string> skipped;
  const std::vector<DeviceInfo> infos = list_all(&skipped);
  if (lower(wanted_device(selector)) == "auto") return open_first_usable(infos, order_of(infos, selector));
  const std::size_t place = [&] {
    try {
      return select_device(infos, selector);
    } catch (const DeviceError& unmatched) {
      std::string hint = idle_platforms_hint();
      for (const std::string& one : skipped) hint += one + "\n";
      if (hint.empty()) throw;
      throw DeviceError(fmt::format("{}\n{}", unmatched.what(), hint.substr(0, hint.size() - 1)));
    }
  }();
  return open_listed(infos[place]);
}

}  // namespace

DevicePtr Device::open(std::string_view selector) {
  check_debug_options();
  return with_host_memory("opening a device", [&] { return open_selected(selector); });
}
}  // namespace concord
