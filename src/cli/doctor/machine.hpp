// This machine as `concord doctor` sees it. The facts and their judgement are separate.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "concord/cli/doctor/finding.hpp"
#include "concord/core/access.hpp"
#include "concord/device/registry.hpp"

namespace concord::cli {

/// Bytes, of a machine or a device, below which little can be trained.
inline constexpr std::uint64_t kLittleMemory = std::uint64_t{1} << 30;

/// A file that a GPU is used through.
struct DeviceFile {
  std::filesystem::path path;
  Permission permission;
};
/// Those under `root`: dev/nvidia0 and beside it, dev/kfd, dev/dri/renderD128, …; by name.
[[nodiscard]] std::vector<DeviceFile> device_files(const std::filesystem::path& root = "/");
/// Whether this user may use them, and whether a device of `listed` stands for each GPU.
[[nodiscard]] std::vector<Finding> findings_of(std::span<const DeviceFile> files, std::span<const DeviceInfo> listed);

struct MachineFacts {
  std::uint64_t memory = 0;               // bytes of main memory; 0: the system does not say
  std::filesystem::path cache;            // of compiled kernels; empty: there is none
  std::string cache_error;                // why nothing can be kept there
  std::optional<LibraryVersions> onednn;  // nothing without the CPU backend
};
[[nodiscard]] MachineFacts machine_facts();
[[nodiscard]] std::vector<Finding> findings_of(const MachineFacts& facts);

/// Of the device that was opened.
[[nodiscard]] std::vector<Finding> findings_of(const DeviceInfo& taken);

}  // namespace concord::cli
