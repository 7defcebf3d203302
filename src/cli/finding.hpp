// What `concord doctor` finds on a machine.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "concord/device/device.hpp"

namespace concord::cli {

struct Finding {
  enum class Weight : std::uint8_t { fine, warning, obstacle };  // an obstacle keeps from training
  Weight weight = Weight::fine;
  std::string text;
};
/// Bytes, of a machine or a device, below which little can be trained.
inline constexpr std::uint64_t kLittleMemory = std::uint64_t{1} << 30;

/// "fine", "warning", "obstacle".
[[nodiscard]] const char* name_of(Finding::Weight weight);

/// The device files of GPUs: whether this user may use them, and whether a device of `listed` stands for them.
[[nodiscard]] std::vector<Finding> device_file_findings(std::span<const DeviceInfo> listed);

/// Main memory, the folder of compiled kernels, the version of oneDNN.
[[nodiscard]] std::vector<Finding> machine_findings();

}  // namespace concord::cli
