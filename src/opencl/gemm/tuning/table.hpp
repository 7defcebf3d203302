// Tuning: which kernel computes a product on this device, where that has been measured — the key of a product, the
// table from keys to choices, its JSON files. Read by prepare_gemm, filled by the Tuner (tuner.hpp). docs/tuning.md
// describes the files.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "concord/core/atomic_file.hpp"
#include "concord/opencl/gemm/implementation.hpp"

namespace concord::opencl {

/// An implementation by name, and a tiling of it; without one it plans that itself.
struct GemmChoice {
  std::string implementation;
  std::optional<GemmTiling> tiling;
  bool operator==(const GemmChoice&) const = default;
};

/// What products have in common for which one choice serves: sizes, precision, the walk of each operand and whether its
/// strides are multiples of 4, how the result is written, and how many operands an epilogue reads.
[[nodiscard]] std::string tuning_key(const Gemm& gemm);

/// Where the choices of a file hold.
struct TuningOrigin {
  std::string device, driver;
  std::uint32_t compute_units = 0;
  std::string kind;  // of kernels: "cpu", "gpu", or "nvidia" or "wave" with matrix cores
  bool operator==(const TuningOrigin&) const = default;
};
[[nodiscard]] TuningOrigin tuning_origin(const Context& context);

/// A digest of the kernels that an implementation multiplies with: a choice holds while they are as they were.
using KernelDigests = std::map<std::string, std::string, std::less<>>;  // by implementation
[[nodiscard]] KernelDigests kernel_digests();

/// What was measured of a product.
struct TuningEntry {
  GemmChoice choice;
  double seconds = 0, planned_seconds = 0;
  std::string planned;  // the kernel that was planned
  bool operator==(const TuningEntry&) const = default;
};
using TuningEntries = std::map<std::string, TuningEntry, std::less<>>;  // by tuning_key

/// A file's entries, without those whose kernels have changed, and the driver that they were measured with.
struct TuningTable {
  std::string driver;
  TuningEntries entries;
};
/// Throws FormatError with the field when the file is no table of tunings, IoError when it cannot be read; nothing when
/// it belongs to an origin that differs in more than the driver.
[[nodiscard]] std::optional<TuningTable> read_tuning(const std::filesystem::path& file, const TuningOrigin& origin);
/// Replaces the file at once. Throws IoError.
void write_tuning(const std::filesystem::path& file, const TuningOrigin& origin, const TuningEntries& entries,
                  Readers readers = Readers::by_umask);

/// The folders that hold tables, the first to be asked first: $CONCORD_TUNING_DIR, `tuning` in the cache folder, and
/// share/concord/tuning beside the library.
[[nodiscard]] std::vector<std::filesystem::path> tuning_folders();

/// The choices for one device, and a note of the products asked for.
class Tuning {
 public:
  explicit Tuning(const Context& context) : context_(context) {}

  /// The choice for a product, where there is one; what was measured with another driver serves where nothing was with
  /// this one. Reads the files of the device when first asked: one that is damaged is named in a warning and left out.
  [[nodiscard]] std::optional<GemmChoice> choice_of(const Gemm& gemm);
  /// Whether there is one that was measured with this driver.
  [[nodiscard]] bool knows(std::string_view key) { return entries().contains(key); }

  /// From here on it holds, and at the next `store` its file.
  void put(const std::string& key, TuningEntry entry);
  /// Writes what was put since the start to `file`, or to the device's file in the first folder, over what stands there
  /// of the same products. Gives the file. Throws IoError, also when there is no folder, and when `file` is something
  /// else than a table of this device; a damaged one in the folder is replaced.
  std::filesystem::path store(const std::filesystem::path& file = {});

  /// While set, gets every product that is asked for.
  std::function<void(const Gemm&)> listener;

 private:
  [[nodiscard]] const TuningEntries& entries();
  void add(const std::filesystem::path& file);

  const Context& context_;
  std::optional<TuningOrigin> origin_;
  std::optional<TuningEntries> entries_;
  TuningEntries of_other_drivers_;
  TuningEntries own_;
};

}  // namespace concord::opencl
