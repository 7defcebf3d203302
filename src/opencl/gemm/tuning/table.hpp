// Tuning: the measured choices of GEMM kernels on this device: the key of a matrix multiplication, the table from keys
// to choices, its JSON files. Read by prepare_gemm, filled by the Tuner (tuner.hpp). docs/tuning.md describes the
// files.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "concord/core/atomic_file.hpp"
#include "concord/core/error.hpp"
#include "concord/opencl/gemm/implementation.hpp"

namespace concord::opencl {

/// An implementation by name, and a tiling of it. Without a tiling, the implementation plans one.
struct GemmChoice {
  std::string implementation;
  std::optional<GemmTiling> tiling;
  bool operator==(const GemmChoice&) const = default;
};

/// The properties that determine a choice; problems with equal keys share it. They are the sizes, precision, the walk
/// over each operand and whether its strides are multiples of 4, how the result is written, and the number of operands
/// of the epilogue.
[[nodiscard]] std::string tuning_key(const Gemm& gemm);

/// The device and driver for which the choices of a file are valid.
struct TuningOrigin {
  std::string device, driver;
  std::uint32_t compute_units = 0;
  std::string kind;  // of kernels: "cpu", "gpu", or "nvidia" or "wave" with matrix cores
  bool operator==(const TuningOrigin&) const = default;
};
[[nodiscard]] TuningOrigin tuning_origin(const Context& context);

/// A digest of the GEMM kernels of an implementation: a choice is valid while they are unchanged.
using KernelDigests = std::map<std::string, std::string, std::less<>>;  // by implementation
[[nodiscard]] KernelDigests kernel_digests();

/// Digests of kernels whose text has changed since, but not the order of their times. Those of `then` are valid while
/// the kernels have the digest `now`.
struct EarlierDigests {
  std::string_view implementation, now;
  std::array<std::string_view, 4> then;
};
[[nodiscard]] std::span<const EarlierDigests> earlier_digests();

/// The measured result for a matrix multiplication.
struct TuningEntry {
  GemmChoice choice;
  double seconds = 0, planned_seconds = 0;
  std::string planned;  // the kernel that was planned
  bool operator==(const TuningEntry&) const = default;
};
using TuningEntries = std::map<std::string, TuningEntry, std::less<>>;  // by tuning_key

/// The entries of a file, without outdated ones, and the driver of the measurements.
struct TuningTable {
  std::string driver;
  TuningEntries entries;
  std::size_t outdated = 0;  // further entries, whose kernels have changed since or do not exist here
};
/// A table in a version of the format that this library cannot read.
class NewerTable : public FormatError {
 public:
  using FormatError::FormatError;
};
/// Reads the text of a file. Returns nothing when the file's origin differs in more than the driver. Throws
/// FormatError, which names the field, when the text is not a tuning table, and NewerTable.
[[nodiscard]] std::optional<TuningTable> tuning_in(std::string_view text, const TuningOrigin& origin);
/// The same for a file. Also throws IoError, when it cannot be read.
[[nodiscard]] std::optional<TuningTable> read_tuning(const std::filesystem::path& file, const TuningOrigin& origin);
/// Replaces the file atomically. Throws IoError.
void write_tuning(const std::filesystem::path& file, const TuningOrigin& origin, const TuningEntries& entries,
                  Readers readers = Readers::by_umask);

/// The folders that hold tables, in order of priority: $CONCORD_TUNING_DIR, `tuning` in the cache folder, and
/// share/concord/tuning beside the library.
[[nodiscard]] std::vector<std::filesystem::path> tuning_folders();

/// The choices for one device, and a record of the requested matrix multiplications.
class Tuning {
 public:
  explicit Tuning(const Context& context) : context_(context) {}

  /// The choice for a matrix multiplication, if there is one. A measurement with another driver is used only where
  /// there is none with this driver. The first call reads the files of the device; it logs a warning that names a
  /// damaged file, and ignores that file.
  [[nodiscard]] std::optional<GemmChoice> choice_of(const Gemm& gemm);
  /// The same, but the listener does not hear of it.
  [[nodiscard]] std::optional<GemmChoice> known(const Gemm& gemm);
  /// Whether there is a measurement with this driver.
  [[nodiscard]] bool knows(std::string_view key) { return entries().contains(key); }

  /// Adds an entry. It is valid at once; the next `store` writes it to the file.
  void put(const std::string& key, TuningEntry entry);
  /// Writes the entries added since the start to `file`, or to the device's file in the first folder. They replace
  /// entries of that file with equal keys; its outdated entries are dropped, and their number is logged. Threads and
  /// processes may store in one file at once. Returns the file. Throws IoError, also when there is no folder, when the
  /// file has a newer version of the format, and when `file` is not a table of this device. In the folder, a damaged
  /// file and one that another user may have written are replaced.
  std::filesystem::path store(const std::filesystem::path& file = {});

  /// While set, called with every requested matrix multiplication.
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
