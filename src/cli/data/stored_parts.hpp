// The parts of a data set as they are stored, without a network that they have to fit. Used by the subcommands of
// `concord data`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "concord/cli/data_spec.hpp"
#include "concord/concord.hpp"
#include "concord/data/records/records.hpp"

namespace concord::cli {

/// A part of a data set: images as they are stored, or other samples.
struct StoredPart {
  std::string name;         // "train", "validation" or "test"
  data::RecordsPtr images;  // null for other data
  SharedSamples samples;    // of other data
  [[nodiscard]] std::int64_t size() const { return images ? images->size() : samples->size(); }
};

/// The part of that name; nothing if the set does not come in such a part. A table is encoded as its training part
/// says. Throws what reading throws, and ArgumentError for random data.
[[nodiscard]] std::optional<StoredPart> open_part(const DataSpec& spec, std::string_view name);
/// The names of the parts that the spec has beside `name`, without opening them.
[[nodiscard]] std::vector<std::string> other_parts(const DataSpec& spec, std::string_view name);
/// All parts that there are, "train" first.
[[nodiscard]] std::vector<StoredPart> open_parts(const DataSpec& spec);

}  // namespace concord::cli
