// Drivers, device files, memory, cache and libraries of this machine.
#include "finding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
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

/// The first line of an .icd file: the driver's library.
std::string library_in(const fs::path& icd) {
  std::ifstream file(icd);
  std::string line;
  std::getline(file, line);
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) line.pop_back();
  return line;
}

Finding driver_finding(const std::string& where, const std::string& library) {
  if (library.empty()) return {Weight::warning, fmt::format("{} names no library; reinstall its driver", where)};
  if (const auto error = library_error(library)) {
    return {Weight::warning,
            fmt::format("{}: the driver {} does not load: {}. Reinstall its package, or remove the file", where,
                        library, *error)};
  }
  return {Weight::fine, fmt::format("{}: the driver {} loads", where, library)};
}

void add_folder(std::vector<Finding>& findings, const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".icd") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) findings.push_back(driver_finding(file.string(), library_in(file)));
}

/// What a variable may name: a folder of .icd files, one of them, or a library.
void add_named(std::vector<Finding>& findings, const std::string& variable, const std::string& name) {
  std::error_code ignored;
  if (fs::is_directory(name, ignored)) return add_folder(findings, name);
  const bool is_icd = fs::path(name).extension() == ".icd";
  if (is_icd && !fs::exists(name, ignored)) {
    findings.push_back({Weight::warning, fmt::format("{} names {}, which is not there", variable, name)});
  } else {
    findings.push_back(driver_finding(variable + "=" + name, is_icd ? library_in(name) : name));
  }
}

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

std::vector<Finding> driver_findings() {
  if (!has_opencl()) return {{Weight::warning, "this build has no OpenCL backend (CONCORD_OPENCL=OFF)"}};
  std::vector<Finding> findings;
  std::string place = "/etc/OpenCL/vendors";
  std::string moved;
  for (const char* variable : {"OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"}) {
    const auto value = environment(variable);
    if (!value || !moved.empty()) continue;
    moved = fmt::format(" ({} is set)", variable);
    place = *value;
    if (std::error_code ignored; fs::exists(place, ignored)) add_named(findings, variable, place);
  }
  if (moved.empty()) add_folder(findings, place);
  std::istringstream names(environment("OCL_ICD_FILENAMES").value_or(""));
  for (std::string name; std::getline(names, name, ':');) add_named(findings, "OCL_ICD_FILENAMES", name);
  if (findings.empty()) {
    findings.push_back({Weight::warning, fmt::format("no OpenCL driver is installed: {} names none{}. {}", place, moved,
                                                     driver_hint())});
  }
  return findings;
}

std::vector<Finding> idle_driver_findings(std::span<const Finding> drivers, std::span<const DeviceInfo> listed,
                                          std::span<const std::string> idle_platforms) {
  constexpr std::string_view kNeeds =
      "PoCL needs a folder that it can write in (HOME, or POCL_CACHE_DIR); a GPU's driver needs its kernel module, of "
      "the same version, and the right to its device files";
  std::vector<Finding> findings;
  for (const std::string& name : idle_platforms) {
    findings.push_back({Weight::warning, fmt::format("OpenCL's platform \"{}\" gives no device. {}", name, kNeeds)});
  }
  const bool loads = std::ranges::any_of(drivers, [](const Finding& one) { return one.weight == Weight::fine; });
  const bool has_device = std::ranges::any_of(listed, [](const DeviceInfo& info) { return info.backend == "opencl"; });
  if (loads && !has_device && findings.empty()) {
    findings.push_back({Weight::warning, fmt::format("OpenCL's drivers load, and give no device. {}", kNeeds)});
  }
  return findings;
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
