// The denylist of a device: the kernels that `concord doctor` found wrong on it, with this driver. Used by the
// KernelAlternatives of both backends.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace concord {

/// The reason why each alternative is disabled, by name.
using Denylist = std::map<std::string, std::string, std::less<>>;

/// The owner of the file. Another driver of the same device has its own file.
struct DenylistOrigin {
  std::string device, driver;
};

/// In the folder "quirks" beside the compiled kernels. Empty if there is no cache folder.
[[nodiscard]] std::filesystem::path denylist_file(const DenylistOrigin& origin);

/// The entries for this device and driver; empty if there is no file. A damaged file, or one of another device, is
/// ignored with a warning.
[[nodiscard]] Denylist read_denylist(const DenylistOrigin& origin);

/// Replaces the file; removes it if the list is empty. Throws IoError.
void write_denylist(const DenylistOrigin& origin, const Denylist& denylist);

}  // namespace concord
