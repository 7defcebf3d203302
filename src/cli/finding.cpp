// Device files, memory, cache and libraries of this machine.
#include "finding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "command.hpp"
#include "concord/core/access.hpp"
#include "concord/core/error.hpp"
#include "concord/core/platform.hpp"
#include "concord/device/registry.hpp"

namespace concord::cli {
namespace {

using Weight = Finding::Weight;
namespace fs = std::filesystem;

/// A kind of device file, whose device should be there, and what is missing if not.
struct DeviceFile {
  std::string folder, prefix;
  std::vector<std::string> vendors;  // in a vendor's, platform's or device's name
  std::string hint;
};

const std::vector<DeviceFile>& device_files() {
  static const std::vector<DeviceFile> all{
      {"/dev", "nvidia0", {"NVIDIA"}, "install nvidia-opencl-icd or libnvidia-compute, of the version of its driver"},
      {"/dev", "kfd", {"AMD", "Advanced Micro"}, "install mesa-opencl-icd or ROCm's rocm-opencl-runtime"},
      {"/dev/dri", "renderD", {}, "install intel-opencl-icd (Intel), mesa-opencl-icd (AMD and others)"}};
  return all;
}

bool stands_for(const DeviceInfo& info, const DeviceFile& kind) {
  const auto named = [&](const std::string& vendor) {
    return (info.vendor + info.platform + info.name).find(vendor) != std::string::npos;
  };
  return info.backend == "opencl" && info.kind == DeviceKind::gpu &&
         (kind.vendors.empty() || std::ranges::any_of(kind.vendors, named));
}

Finding cache_finding() {
  const fs::path folder = cache_directory();
  if (folder.empty()) {
    return {Weight::warning,
            "there is no folder for compiled kernels: set CONCORD_CACHE_DIR; each start compiles them anew"};
  }
  const auto warning = [&](std::string_view why) -> Finding {
    return {Weight::warning,
            fmt::format("compiled kernels cannot be kept in {}: {}. Each start compiles them anew; set "
                        "CONCORD_CACHE_DIR to a folder of your own",
                        folder.string(), why)};
  };
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return warning(error.message());
  try {
    const AtomicFile probe(folder / "doctor");
  } catch (const IoError& refusal) {
    return warning(refusal.what());
  }
  return {Weight::fine, fmt::format("compiled kernels are kept in {}", folder.string())};
}

Finding memory_finding() {
  const std::uint64_t bytes = physical_memory_bytes();
  if (bytes == 0) return {Weight::fine, "the system does not say how much memory there is"};
  if (bytes < kLittleMemory) {
    return {Weight::warning, fmt::format("{} of main memory is little: take a small --batch, and close other programs",
                                         human_bytes(bytes))};
  }
  return {Weight::fine, human_bytes(bytes) + " of main memory"};
}

Finding library_finding() {
  const auto versions = onednn_versions();
  if (!versions) return {Weight::fine, "this build has no CPU backend (CONCORD_CPU=OFF)"};
  if (versions->built != versions->loaded) {
    return {Weight::warning,
            fmt::format("compiled with oneDNN {}, but {} is loaded: rebuild, or look at LD_LIBRARY_PATH",
                        versions->built, versions->loaded)};
  }
  return {Weight::fine, fmt::format("oneDNN {}, as compiled with", versions->loaded)};
}

}  // namespace

const char* name_of(Finding::Weight weight) {
  switch (weight) {
    case Weight::fine: return "fine";
    case Weight::warning: return "warning";
    case Weight::obstacle: return "obstacle";
  }
  return "unknown";
}

std::vector<Finding> device_file_findings(std::span<const DeviceInfo> listed) {
  std::vector<Finding> findings;
  for (const DeviceFile& kind : device_files()) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(kind.folder, ignored)) {
      const fs::path& file = entry.path();
      if (!file.filename().string().starts_with(kind.prefix)) continue;
      if (!may_read_and_write(file)) {
        const char* const group = kind.prefix == "nvidia0" ? "video" : "render,video";
        findings.push_back(
            {Weight::warning, fmt::format("{} may not be used by you: sudo usermod -aG {} {}, then log in again",
                                          file.string(), group, user_name())});
      } else if (std::ranges::none_of(listed, [&](const DeviceInfo& info) { return stands_for(info, kind); })) {
        findings.push_back(
            {Weight::warning, fmt::format("{} is there, but no OpenCL device for it: {}", file.string(), kind.hint)});
      } else {
        findings.push_back({Weight::fine, file.string() + " may be used"});
      }
    }
  }
  return findings;
}

std::vector<Finding> machine_findings() { return {memory_finding(), cache_finding(), library_finding()}; }

}  // namespace concord::cli
