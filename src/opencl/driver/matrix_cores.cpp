// Recognises matrix cores by the reported properties, and lists what each kind supports.
#include "concord/opencl/driver/matrix_cores.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "concord/opencl/driver/limits.hpp"

namespace concord::opencl {
namespace {

constexpr std::string_view kDpas = "cl_intel_subgroup_matrix_multiply_accumulate";

/// Sub-group sizes that a kernel may request by cl_intel_required_subgroup_size; empty where the device does not report
/// them.
std::vector<std::size_t> sub_groups_of(const boost::compute::device& device) {
  constexpr cl_device_info kSubGroupSizes = 0x4108;  // CL_DEVICE_SUB_GROUP_SIZES_INTEL
  std::size_t bytes = 0;
  if (clGetDeviceInfo(device.id(), kSubGroupSizes, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::vector<std::size_t> sizes(bytes / sizeof(std::size_t));
  if (clGetDeviceInfo(device.id(), kSubGroupSizes, bytes, sizes.data(), nullptr) != CL_SUCCESS) return {};
  return sizes;
}

bool lists(std::string_view extensions, std::string_view name) {
  for (std::size_t at = extensions.find(name); at != std::string_view::npos; at = extensions.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || extensions[at - 1] == ' ') && (end == extensions.size() || extensions[end] == ' ')) return true;
  }
  return false;
}

}  // namespace

WaveUnits amd_wave_units(std::string_view vendor, std::string_view name) {
  constexpr std::array<std::string_view, 3> kCdna{"gfx90a", "gfx942", "gfx950"};
  if (!vendor.starts_with("Advanced Micro Devices")) return WaveUnits::none;
  const std::string_view processor = name.substr(0, name.find(':'));
  if (processor == "gfx908") return WaveUnits::mfma_first;
  if (std::ranges::find(kCdna, processor) != kCdna.end()) return WaveUnits::mfma;
  const bool has_three_digits_more = processor.size() == std::string_view("gfx1100").size();
  if (has_three_digits_more && processor.starts_with("gfx11")) return WaveUnits::wmma;
  if (has_three_digits_more && processor.starts_with("gfx120")) return WaveUnits::wmma_12;
  return WaveUnits::none;
}

WaveUnits intel_wave_units(std::string_view extensions, std::span<const std::size_t> sub_groups) {
  if (!lists(extensions, kDpas) || !lists(extensions, "cl_intel_required_subgroup_size")) return WaveUnits::none;
  if (sub_groups.empty()) return WaveUnits::none;
  const std::size_t smallest = *std::ranges::min_element(sub_groups);
  if (smallest == 8) return WaveUnits::dpas_8;
  return smallest == 16 ? WaveUnits::dpas_16 : WaveUnits::none;
}

WaveUnits wave_units_of(const boost::compute::device& device) {
  const DeviceLimits held_to = device_limits();
  if (!held_to.extensions || !held_to.fp16 || !held_to.subgroups || held_to.are_lowered()) return WaveUnits::none;
  if (const WaveUnits units = amd_wave_units(device.vendor(), device.name()); units != WaveUnits::none) return units;
  const auto extensions = device.get_info<std::string>(CL_DEVICE_EXTENSIONS);
  return lists(extensions, kDpas) ? intel_wave_units(extensions, sub_groups_of(device)) : WaveUnits::none;
}

std::string_view name_of(WaveUnits units) {
  constexpr std::array<std::string_view, 7> kNames{"none", "MFMA", "MFMA", "WMMA", "WMMA_12", "DPAS_8", "DPAS_16"};
  return kNames.at(static_cast<std::size_t>(units));
}

std::int64_t lanes_of(WaveUnits units) {
  constexpr std::array<std::int64_t, 7> kLanes{1, 64, 64, 32, 32, 8, 16};
  return kLanes.at(static_cast<std::size_t>(units));
}

bool multiply_in(WaveUnits units, Precision precision) {
  if (units == WaveUnits::none) return false;
  if (precision == Precision::fp16) return true;
  if (precision == Precision::bf16) return units != WaveUnits::mfma_first;
  return units == WaveUnits::mfma_first || units == WaveUnits::mfma;
}

}  // namespace concord::opencl
