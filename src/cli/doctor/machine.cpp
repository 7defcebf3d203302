// Device files, memory, cache and libraries: gathered, then judged.
#include "concord/cli/doctor/machine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/cli/command.hpp"
#include "concord/core/atomic_file.hpp"
#include "concord/core/error.hpp"
#include "concord/core/human_bytes.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/private_files.hpp"
#include "concord/core/text.hpp"
#include "concord/device/selection.hpp"

namespace concord::cli {
namespace {

namespace fs = std::filesystem;

/// A kind of device file, whose device should be there, and what is missing if not.
struct FileKind {
  std::string_view folder, name;
  bool is_numbered = false;                 // "renderD" stands for renderD128
  std::vector<std::string_view> vendors{};  // in a vendor's, platform's or device's name; empty: any
  std::string_view hint{};                  // empty: it is none of one GPU
};

const std::vector<FileKind>& file_kinds() {
  static const std::vector<FileKind> all{
      {"dev",
       "nvidia",
       true,
       {"NVIDIA"},
       "install nvidia-opencl-icd or libnvidia-compute, in the version of its kernel driver"},
      {"dev", "nvidiactl"},
      {"dev", "nvidia-uvm"},
      {"dev", "kfd", false, {"AMD", "Advanced Micro"}, "install mesa-opencl-icd or rocm-opencl-icd"},
      {"dev/dri", "renderD", true, {}, "install intel-opencl-icd (Intel), mesa-opencl-icd (AMD and others)"}};
  return all;
}

bool is_of(const FileKind& kind, std::string_view name) {
  if (!name.starts_with(kind.name)) return false;
  const std::string_view rest = name.substr(kind.name.size());
  const bool is_number = std::ranges::all_of(rest, [](char c) { return is_digit(c); });
  return is_number && rest.empty() != kind.is_numbered;
}

const FileKind& kind_of(const DeviceFile& file) {
  const std::string name = file.path.filename().string();
  return *std::ranges::find_if(file_kinds(), [&](const FileKind& kind) { return is_of(kind, name); });
}

bool stands_for(const DeviceInfo& info, const FileKind& kind) {
  const auto named = [&](std::string_view vendor) {
    return (info.vendor + info.platform + info.name).find(vendor) != std::string::npos;
  };
  return info.backend == "opencl" && info.kind == DeviceKind::gpu &&
         (kind.vendors.empty() || std::ranges::any_of(kind.vendors, named));
}

std::string way_in(const Permission& permission) {
  if (permission.of_group)
    return fmt::format("sudo usermod -aG {} {}, then log in again", permission.group, user_name());
  return fmt::format(
      "its group {} may not use it either; the package of its driver has a udev rule that permits the group render or "
      "video",
      permission.group);
}

Finding finding_of(const DeviceFile& file, std::span<const DeviceInfo> listed) {
  const std::string path = file.path.string();
  if (!file.permission.ours) {
    return warning(Trouble::device_file_closed, fmt::format("you may not use {}: {}", path, way_in(file.permission)));
  }
  const FileKind& kind = kind_of(file);
  const auto stands = [&](const DeviceInfo& info) { return stands_for(info, kind); };
  if (!kind.hint.empty() && std::ranges::none_of(listed, stands)) {
    return warning(Trouble::device_file_without_device,
                   fmt::format("{} exists, but no OpenCL device belongs to it: {}", path, kind.hint));
  }
  return fine(path + " can be used");
}

Finding cache_finding(const MachineFacts& facts) {
  if (facts.cache.empty()) {
    return warning(Trouble::cache_not_kept,
                   "there is no folder for compiled kernels: set CONCORD_CACHE_DIR; each start compiles them again");
  }
  if (facts.cache_error.empty()) return fine(fmt::format("compiled kernels are stored in {}", facts.cache.string()));
  return warning(Trouble::cache_not_kept,
                 fmt::format("compiled kernels cannot be stored in {}: {}. Each start compiles them again; set "
                             "CONCORD_CACHE_DIR to a folder of your own",
                             facts.cache.string(), facts.cache_error));
}

Finding memory_finding(const MachineFacts& facts) {
  if (facts.memory == 0) return fine("the size of host memory is unknown");
  const std::string size = human_bytes(facts.memory);
  if (facts.memory >= kLittleMemory) return fine(size + " of host memory");
  return warning(Trouble::little_memory,
                 size + " of host memory is little: use a small --batch, and close other programs");
}

Finding library_finding(const MachineFacts& facts) {
  if (!facts.onednn) return fine("this build has no CPU backend (CONCORD_CPU=OFF)");
  const auto& [built, loaded] = *facts.onednn;
  if (built == loaded) return fine(fmt::format("oneDNN {}, as compiled with", loaded));
  return warning(
      Trouble::library_does_not_fit,
      fmt::format("compiled with oneDNN {}, but {} is loaded: rebuild, or look at LD_LIBRARY_PATH", built, loaded));
}

/// Why nothing can be kept in the folder; empty where it can.
std::string error_of_cache(const fs::path& folder) {
  for (const char* part : {"", "programs", "quirks", "tuning"}) {
    if (std::string why = foreign_access(folder / part); !why.empty()) return why;
  }
  try {
    create_private_directories(folder);
  } catch (const IoError& refusal) {
    const std::string text = refusal.what();
    return text.substr(text.rfind(": ") + 2);  // the system's reason
  }
  try {
    const AtomicFile probe(folder / "doctor");
  } catch (const IoError& refusal) {
    return refusal.what();
  }
  return {};
}

}  // namespace

std::vector<DeviceFile> device_files(const fs::path& root) {
  std::vector<DeviceFile> files;
  for (const FileKind& kind : file_kinds()) {
    for (const fs::path& path : paths_in(root / kind.folder)) {
      if (is_of(kind, path.filename().string())) files.push_back({path, permission_of(path)});
    }
  }
  std::ranges::sort(files, {}, &DeviceFile::path);
  return files;
}

std::vector<Finding> findings_of(std::span<const DeviceFile> files, std::span<const DeviceInfo> listed) {
  std::vector<Finding> findings;
  for (const DeviceFile& file : files) findings.push_back(finding_of(file, listed));
  return findings;
}

MachineFacts machine_facts() {
  MachineFacts facts{physical_memory_bytes(), cache_directory(), {}, onednn_versions()};
  if (!facts.cache.empty()) facts.cache_error = error_of_cache(facts.cache);
  return facts;
}

std::vector<Finding> findings_of(const MachineFacts& facts) {
  return {memory_finding(facts), cache_finding(facts), library_finding(facts)};
}

std::vector<Finding> findings_of(const DeviceInfo& taken) {
  std::vector<Finding> findings{fine("taken: " + describe(taken))};
  if (taken.memory > 0 && taken.memory < kLittleMemory) {
    findings.push_back(warning(Trouble::little_memory, fmt::format("its memory of {} is small: use a small --batch",
                                                                   human_bytes(taken.memory))));
  }
  return findings;
}

}  // namespace concord::cli
