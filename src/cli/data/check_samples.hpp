// The parts of a set, sample by sample. Used by `concord data check`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "concord/cli/data/check_report.hpp"
#include "concord/cli/data/fingerprint.hpp"
#include "concord/cli/data/stored_parts.hpp"

namespace concord::cli {

struct CheckOptions {
  int threads = 1;
  bool has_thumbnails = false, is_quiet = false;
};

/// Reads every image of parts that all have images. Sets all of a report but spec and warnings.
void check_images(const std::vector<StoredPart>& parts, const CheckOptions& options, CheckReport& report);
/// Reads every sample of parts that have other data.
void check_arrays(const std::vector<StoredPart>& parts, const CheckOptions& options, CheckReport& report);
/// Reads the tables of a csv: set.
void check_tables(const DataSpec& spec, CheckReport& report);

/// A sample and what it is known by.
struct SeenSample {
  Fingerprint stored, content;
  std::size_t part = 0;
  std::int64_t row = 0;
};
/// The groups of samples of one content; `member` names a sample and its label.
[[nodiscard]] std::vector<DuplicateGroup> duplicates_among(
    std::vector<SeenSample> samples, const std::function<DuplicateGroup::Member(const SeenSample&)>& member);

/// The names of the classes, or their indices: "0", "1", …; empty where the labels are no classes.
[[nodiscard]] std::vector<std::string> class_titles(const Column& labels, const std::vector<std::string>& names);
/// How many samples each class has.
[[nodiscard]] std::vector<std::int64_t> class_counts_of(const Column& labels, std::size_t classes);

}  // namespace concord::cli
