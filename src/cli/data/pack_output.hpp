// Where packed samples go: shards, a database or a folder. Everything is written under other names, with ".incomplete"
// at their end, and renamed when all of it is there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "concord/cli/data/pack_labels.hpp"
#include "concord/cli/data/pack_sample.hpp"

namespace concord::cli {

enum class PackKind : std::uint8_t { shards, lmdb, folder };

/// What OUT says: "x-%06d.tar" or "x.tar", a folder "x.lmdb", a folder "x/". Throws ArgumentError for anything else.
[[nodiscard]] PackKind pack_kind_of(const std::string& out);

struct ShardLimits {
  std::uint64_t bytes = std::uint64_t{256} << 20;
  std::int64_t samples = 0;  // 0: any number
  bool are_given = false;    // by the user
};

class PackOutput {
 public:
  PackOutput() = default;
  PackOutput(const PackOutput&) = delete;
  PackOutput& operator=(const PackOutput&) = delete;
  /// Without `finish` nothing is left.
  virtual ~PackOutput() = default;
  /// `row` is that of the label, `key` the name of the sample.
  virtual void add(const std::string& key, std::int64_t row, const PackedSample& sample) = 0;
  virtual void finish() = 0;
  /// For --data: "tar:x-{000000..000002}.tar".
  [[nodiscard]] virtual std::string spec() const = 0;
  /// "3 shards"
  [[nodiscard]] virtual std::string what() const = 0;
};

/// Throws IoError, in words for people, if there is something at OUT that `is_forced` does not allow to replace, and
/// ArgumentError if the labels or masks do not go there.
[[nodiscard]] std::unique_ptr<PackOutput> pack_output(const std::string& out, const PackLabels& labels, bool has_masks,
                                                      const ShardLimits& limits, bool is_forced);

// Each of them, for pack_output.
[[nodiscard]] std::unique_ptr<PackOutput> pack_into_shards(const std::string& out, const PackLabels& labels,
                                                           const ShardLimits& limits, bool is_forced);
[[nodiscard]] std::unique_ptr<PackOutput> pack_into_lmdb(const std::string& out, const PackLabels& labels,
                                                         bool is_forced);
[[nodiscard]] std::unique_ptr<PackOutput> pack_into_folder(const std::string& out, const PackLabels& labels,
                                                           bool is_forced);

}  // namespace concord::cli
