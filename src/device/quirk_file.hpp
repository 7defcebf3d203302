// The quirk file of a device: the kernels that `concord doctor` found wrong on it, with this driver. Used by the
// Variants of both backends.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace concord {

/// Why a variant is not taken, by its name.
using Quirks = std::map<std::string, std::string, std::less<>>;

/// Whose file it is: another driver of the same device has its own.
struct QuirkOrigin {
  std::string device, driver;
};

/// In the folder "quirks" beside the compiled kernels; empty where there is no such place.
[[nodiscard]] std::filesystem::path quirk_file(const QuirkOrigin& origin);

/// What the file says of this device and driver; nothing where there is none. A file that cannot be understood, or of
/// another device, is told in the log and says nothing.
[[nodiscard]] Quirks read_quirks(const QuirkOrigin& origin);

/// Replaces the file; removes it when there are no quirks. Throws IoError.
void write_quirks(const QuirkOrigin& origin, const Quirks& quirks);

}  // namespace concord
