// Drivers as OpenCL's loader looks for them, and the trial of each.
#include "concord/cli/doctor/drivers.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>

#include "concord/core/access.hpp"
#include "concord/core/child_process.hpp"
#include "concord/core/error.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/device/registry.hpp"
#include "concord/device/selection.hpp"

namespace concord::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{60};  // many GPUs take some seconds
constexpr const char* kVendors = "OCL_ICD_VENDORS";
constexpr const char* kVendorPath = "OPENCL_VENDOR_PATH";
constexpr const char* kFilenames = "OCL_ICD_FILENAMES";

/// The first line of an .icd file: the driver's library.
std::string library_in(const fs::path& icd) {
  std::ifstream file(icd);
  std::string line;
  std::getline(file, line);
  while (!line.empty() && is_space(line.back())) line.pop_back();
  return line;
}

/// In a copy of this process. Where none can be made, nothing is known against the drivers.
ChildEnd ask_for_devices(const std::function<void()>& before) {
  try {
    return ChildProcess::copy([&] {
             before();
             static_cast<void>(Device::list());
           })
        .finish(kPatience);
  } catch (const IoError&) {
    return {};
  }
}

std::string_view last_line(std::string_view text) {
  const std::size_t end = text.find_last_not_of(" \r\n\t");
  if (end == std::string_view::npos) return {};
  text = text.substr(0, end + 1);
  return text.substr(text.find_last_of('\n') + 1);
}

/// "Aborted, after \"out of memory\"".
std::string ending(const ChildEnd& trial) {
  const std::string_view last = last_line(trial.output);
  return last.empty() ? trial.how : fmt::format("{}, after \"{}\"", trial.how, last);
}

}  // namespace

Drivers::Drivers() {
  if (!has_opencl()) {
    findings_.push_back(warning(Trouble::no_backend, "this build has no OpenCL backend (CONCORD_OPENCL=OFF)"));
    return;
  }
  std::string place = "/etc/OpenCL/vendors";
  std::string moved;
  for (const char* variable : {kVendors, kVendorPath}) {
    const auto value = environment(variable);
    if (!value || !moved.empty()) continue;
    moved = fmt::format(" ({} is set)", variable);
    place = *value;
    if (std::error_code ignored; fs::exists(place, ignored)) add_named(variable, place);
  }
  if (moved.empty()) add_folder(place);
  for (const std::string& name : split(environment(kFilenames).value_or(""), ':')) add_named(kFilenames, name);
  if (findings_.empty()) {
    findings_.push_back(warning(Trouble::no_driver, fmt::format("no OpenCL driver is installed: {} has no driver{}. {}",
                                                                place, moved, driver_hint())));
  }
}

Drivers::~Drivers() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

void Drivers::add(const std::string& where, const std::string& library) {
  if (library.empty()) {
    findings_.push_back(
        warning(Trouble::driver_does_not_load, fmt::format("{} names no library; reinstall its driver", where)));
  } else if (const auto error = library_error(library)) {
    findings_.push_back(
        warning(Trouble::driver_does_not_load,
                fmt::format("{}: the driver {} does not load: {}. Reinstall its package, or remove the file", where,
                            library, *error)));
  } else {
    findings_.push_back(fine(fmt::format("{}: the driver {} loads", where, library)));
    libraries_.push_back({where, library});
  }
}

void Drivers::add_folder(const fs::path& folder) {
  for (const fs::path& file : paths_in(folder)) {
    if (file.extension() == ".icd") add(file.string(), library_in(file));
  }
}

/// What a variable may name: a folder of .icd files, one of them, or a library.
void Drivers::add_named(const std::string& variable, const std::string& name) {
  std::error_code ignored;
  if (fs::is_directory(name, ignored)) return add_folder(name);
  const bool is_icd = fs::path(name).extension() == ".icd";
  if (is_icd && !fs::exists(name, ignored)) {
    findings_.push_back(
        warning(Trouble::driver_does_not_load, fmt::format("{} names {}, which does not exist", variable, name)));
  } else {
    add(variable + "=" + name, is_icd ? library_in(name) : name);
  }
}

bool Drivers::make_folder() {
  std::error_code error;
  std::string name = (fs::temp_directory_path(error) / "concord-drivers-XXXXXX").string();
  if (error || ::mkdtemp(name.data()) == nullptr) return false;
  folder_ = name;
  return true;
}

void Drivers::leave_only(std::span<const Library> libraries) {
  std::error_code ignored;
  for (const fs::path& file : paths_in(folder_)) fs::remove(file, ignored);
  for (std::size_t i = 0; i < libraries.size(); ++i) {
    std::ofstream(folder_ / fmt::format("{:03}.icd", i)) << libraries[i].name << "\n";
  }
  ::setenv(kVendors, folder_.empty() ? "/nonexistent" : folder_.c_str(), 1);
  ::unsetenv(kVendorPath);
  ::unsetenv(kFilenames);
}

std::vector<Finding> Drivers::try_out(Finding::Weight weight) {
  const ChildEnd together = ask_for_devices([] {});
  if (!together.failed) return {};
  if (!make_folder()) {
    leave_only({});
    libraries_.clear();
    return {{weight, Trouble::driver_ends_programs,
             fmt::format("The OpenCL drivers end every program that asks for devices: {}. Finding the driver needs a "
                         "folder for temporary files (TMPDIR)",
                         ending(together))}};
  }
  std::vector<Finding> findings;
  std::vector<Library> sound;
  for (const Library& library : libraries_) {
    const ChildEnd alone = ask_for_devices([&] { leave_only({&library, 1}); });
    if (!alone.failed) {
      sound.push_back(library);
      continue;
    }
    findings.push_back(
        {weight, Trouble::driver_ends_programs,
         fmt::format(
             "{}: the driver {} ends every program that asks OpenCL for devices: {}. {}. Repair it or remove the file; "
             "until then use `--device cpu`, or set {} to a folder with the .icd files of the other drivers",
             library.where, library.name, ending(alone), driver_needs(), kVendors)});
  }
  if (findings.empty()) {
    sound.clear();
    findings.push_back(
        {weight, Trouble::driver_ends_programs,
         fmt::format("The OpenCL drivers together end a program that asks for devices: {}. Each alone does not: remove "
                     "the .icd file of one, or set {} to a folder with the .icd files of the others",
                     ending(together), kVendors)});
  }
  leave_only(sound);
  libraries_ = std::move(sound);
  return findings;
}

std::vector<Finding> idle_driver_findings(const Drivers& drivers, std::span<const DeviceInfo> listed,
                                          std::span<const std::string> idle_platforms) {
  std::vector<Finding> findings;
  for (const std::string& name : idle_platforms) {
    findings.push_back(warning(Trouble::driver_without_device,
                               fmt::format("OpenCL platform \"{}\" has no device. {}", name, driver_needs())));
  }
  const bool has_device = std::ranges::any_of(listed, [](const DeviceInfo& info) { return info.backend == "opencl"; });
  if (drivers.has_any() && !has_device && findings.empty()) {
    findings.push_back(warning(Trouble::driver_without_device,
                               fmt::format("The OpenCL drivers load, but have no device. {}", driver_needs())));
  }
  return findings;
}

}  // namespace concord::cli
