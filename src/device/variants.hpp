// Variants: the ways to compute that a device has beside plainer ones, and which of them it does not take because they
// were found to be wrong. `concord doctor` finds and marks those. From Device::variants.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace concord {

struct Variant {
  std::string name;    // "product tiled"
  std::string family;  // of operators that it computes: "product"
  std::string quirk;   // why it is not taken; empty where it is
};

/// What is said applies to kernels prepared from then on. Functions with a name throw ArgumentError where the device
/// has no such variant.
class Variants {
 public:
  virtual ~Variants() = default;
  [[nodiscard]] virtual std::vector<Variant> list() const = 0;
  /// Takes it wherever it can serve, planned or not, unless it is marked. An empty name goes back to what is planned.
  virtual void prefer(std::string_view name) = 0;
  /// By how many kernels it was taken so far; of products, where it was preferred.
  [[nodiscard]] virtual std::int64_t uses(std::string_view name) const = 0;
  /// Does without it for this reason; an empty one lifts the mark.
  virtual void mark(std::string_view name, std::string quirk) = 0;
  /// The device's quirk file; empty where there is no folder for it.
  [[nodiscard]] virtual std::filesystem::path file() const = 0;
  /// Makes the quirk file say what is marked, so that every process obeys; without marks there is none. Throws IoError.
  virtual void store() const = 0;
  /// Lifts every mark and removes the quirk file; the number of marks that there were. Throws IoError.
  virtual std::size_t forget() = 0;
};

}  // namespace concord
