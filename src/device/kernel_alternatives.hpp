// KernelAlternatives: a device has several kernels for some operators. These are the faster ones; each may be preferred
// or disabled. `concord doctor` disables those that it finds wrong. Device::alternatives returns them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace concord {

struct KernelAlternative {
  std::string name;    // "product tiled"
  std::string family;  // the family of operators that it computes: "product"
  std::string reason;  // why it is disabled; empty if it is enabled
};

/// A change applies to kernels that are prepared afterwards. Functions with a name throw ArgumentError if the device
/// has no such alternative.
class KernelAlternatives {
 public:
  virtual ~KernelAlternatives() = default;
  [[nodiscard]] virtual std::vector<KernelAlternative> list() const = 0;
  /// Uses the alternative wherever it supports the operator, even if another kernel is planned. Disabled alternatives
  /// are not used. An empty name restores the planned choice.
  virtual void prefer(std::string_view name) = 0;
  /// The number of kernels that used the alternative. Matrix multiplications count only while it is preferred.
  [[nodiscard]] virtual std::int64_t uses(std::string_view name) const = 0;
  /// Disables the alternative for this reason. An empty reason enables it again.
  virtual void disable(std::string_view name, std::string reason) = 0;
  /// The denylist of the device. Empty if there is no folder for it.
  [[nodiscard]] virtual std::filesystem::path file() const = 0;
  /// Writes the disabled alternatives to the denylist, which every process reads. Removes the file if none is disabled.
  /// Throws IoError.
  virtual void store() const = 0;
  /// Enables all alternatives and removes the denylist. Returns how many were disabled. Throws IoError.
  virtual std::size_t forget() = 0;
};

}  // namespace concord
