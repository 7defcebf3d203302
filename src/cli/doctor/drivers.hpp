// The OpenCL drivers of this machine, for `concord doctor`.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "concord/cli/doctor/finding.hpp"
#include "concord/device/device.hpp"

namespace concord::cli {

/// The OpenCL drivers that are installed, as the loader finds them (/etc/OpenCL/vendors, OCL_ICD_VENDORS,
/// OPENCL_VENDOR_PATH, OCL_ICD_FILENAMES). To be made before anything else asks for OpenCL: a loader may change these
/// variables.
class Drivers {
 public:
  Drivers();
  Drivers(const Drivers&) = delete;
  Drivers& operator=(const Drivers&) = delete;
  ~Drivers();

  /// Which there are, and whether their libraries load.
  [[nodiscard]] const std::vector<Finding>& findings() const { return findings_; }
  [[nodiscard]] bool has_any() const { return !libraries_.empty(); }

  /// Lists the devices of all drivers in a copy of this process. If the copy fails, tries each driver alone; from then
  /// on OpenCL's loader in this process finds only the drivers that did not fail. Returns the failed ones as findings
  /// of this weight.
  [[nodiscard]] std::vector<Finding> try_out(Finding::Weight weight);

 private:
  struct Library {
    std::string where, name;  // the file or variable that names it; what the loader loads
  };
  void add(const std::string& where, const std::string& library);
  void add_folder(const std::filesystem::path& folder);
  void add_named(const std::string& variable, const std::string& name);
  /// For what is left; false where there is no place for it.
  [[nodiscard]] bool make_folder();
  /// For OpenCL's loader in this process. Without a folder, none of them.
  void leave_only(std::span<const Library> libraries);

  std::vector<Finding> findings_;
  std::vector<Library> libraries_;  // that load
  std::filesystem::path folder_;    // of the drivers that are left; empty until they are fewer
};

/// Drivers that load and give no device: each platform without one, and, if OpenCL has no device at all, each driver
/// that is not even a platform.
[[nodiscard]] std::vector<Finding> idle_driver_findings(const Drivers& drivers, std::span<const DeviceInfo> listed,
                                                        std::span<const std::string> idle_platforms);

}  // namespace concord::cli
