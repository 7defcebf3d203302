// Device::open and Device::list over the backends of this build.
#include "concord/device/registry.hpp"

#include <optional>

#include "concord/core/check.hpp"
#include "concord/core/debug_options.hpp"
#include "concord/core/host_memory.hpp"
#include "concord/core/log.hpp"
#include "concord/core/text.hpp"
#include "concord/device/selection.hpp"

namespace concord {
namespace {

DevicePtr open_listed(const DeviceInfo& info) {
#ifdef CONCORD_WITH_OPENCL
  if (info.backend == "opencl")
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
                driver_hint());
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

DevicePtr open_selected(std::string_view selector) {
#ifdef CONCORD_WITH_CPU
  // To load drivers takes tens of milliseconds.
  if (selects_cpu(selector)) return cpu::open_device(0);
#endif
  std::vector<std::string> skipped;
  const std::vector<DeviceInfo> infos = list_all(&skipped);
  if (lower(wanted_device(selector)) == "auto") return open_first_usable(infos, auto_order_of_process(infos, selector));
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
