// Parts of data sets, opened.
#include "concord/cli/data/stored_parts.hpp"

#include <array>
#include <limits>
#include <utility>

#include "concord/cli/data_parts.hpp"
#include "concord/cli/dataset.hpp"
#include "concord/core/check.hpp"
#include "concord/data/in_memory.hpp"
#include "concord/data/records/open.hpp"
#include "concord/data/records/shard_names.hpp"

namespace concord::cli {
namespace {

constexpr std::array<std::string_view, 3> kPartNames = {"train", "validation", "test"};

/// Stored images; `train` is the training part, whose classes hold for the others, or null.
data::RecordsPtr open_stored(const DataSpec& spec, std::string_view part, const data::Records* train) {
  const std::filesystem::path path = path_of_part(spec, part);
  if (path.empty()) return nullptr;
  data::RecordOptions how{.masks = masks_of_part(spec, part)};
  how.mask_classes = classes_of_masks(spec).value_or(0);
  if (train != nullptr && !train->has_mask()) {  // else the classes are those of pixels
    how.class_names = train->class_names;
    if (how.class_names.empty()) how.numbered_classes = train->labels[0].classes;
  }
  if (spec.kind == "lmdb") return data::open_lmdb(path, how);
  data::RecordsPtr records;
  if (spec.kind == "tar") {
    const std::vector<std::string> shards = data::expand_braces(path.string());
    records = data::open_tar({shards.begin(), shards.end()}, how);
  } else {
    records = data::open_folder(path, part == "train" ? spec.option("list") : "", how);
  }
  require_masks(spec, records->has_mask());
  return records;
}

/// What DataSource reads takes a model. This one is for everything.
const models::Model& any_model(const DataSpec& spec) {
  static const models::Model words{
      .name = "the data", .description = "", .input = Shape{64}, .make = {}, .task = models::Task::language};
  static const models::Model numbers{
      .name = "the data", .description = "", .input = Shape{1}, .classes = std::numeric_limits<int>::max(), .make = {}};
  static const models::Model letters{
      .name = "the data", .description = "", .input = Shape{}, .make = {}, .task = models::Task::transcription};
  const bool has_transcripts = spec.option("transcripts") == "yes" || !spec.option("alphabet").empty();
  if (spec.kind == "audio" && has_transcripts) return letters;
  return spec.kind == "text" ? words : numbers;
}

bool is_collection(const DataSpec& spec) { return !spec.is_own() && spec.kind != "text"; }

/// Whether a data set has images with a class or a target for each, which can be decoded, packed and shown.
bool has_images(const Dataset& dataset) {
  const Shape& shape = dataset.features.shape();
  const bool is_image = dataset.features.dtype() == DType::u8 && shape.rank() == 4 && (shape[1] == 1 || shape[1] == 3);
  const std::size_t label_rank = dataset.labels.dtype() == DType::i32 ? 1 : 2;
  return is_image && dataset.more_features.empty() && dataset.labels.shape().rank() == label_rank;
}

StoredPart stored_part(std::string_view name, SharedSamples samples) {
  StoredPart part{std::string(name), nullptr, std::move(samples)};
  const Dataset* const dataset = data::dataset_of(*part.samples);
  const bool is_whole = dataset != nullptr && dataset->size() == part.samples->size();  // no selection of one
  if (is_whole && has_images(*dataset)) part.images = data::open_arrays(*dataset);
  return part;
}

/// The parts of these names that there are.
std::vector<StoredPart> open_named(const DataSpec& spec, std::span<const std::string_view> names) {
  CONCORD_CHECK(spec.kind != "random", ArgumentError, "random data is made, not stored: name a data set in files");
  std::vector<StoredPart> parts;
  if (spec.is_images()) {
    data::RecordsPtr train;
    for (const std::string_view name : kPartNames) {
      const bool is_wanted = std::ranges::find(names, name) != names.end();
      if (!is_wanted && name != "train") continue;
      data::RecordsPtr records = open_stored(spec, name, train.get());
      if (records == nullptr) continue;
      if (train == nullptr) train = records;
      if (is_wanted) parts.push_back({std::string(name), std::move(records), {}});
    }
    return parts;
  }
  if (is_collection(spec)) {
    for (const std::string_view name : names) {
      if (name != "validation") parts.push_back(stored_part(name, read_collection(spec, name)));
    }
    return parts;
  }
  DataOptions options;
  options.text = spec.text;
  options.is_as_stored = true;
  DataSource source(std::move(options), any_model(spec), 1);
  for (const std::string_view name : names) {
    if (SharedSamples samples = source.part(name)) parts.push_back(stored_part(name, std::move(samples)));
  }
  return parts;
}

}  // namespace

std::optional<StoredPart> open_part(const DataSpec& spec, std::string_view name) {
  std::vector<StoredPart> parts = open_named(spec, std::span(&name, 1));
  if (parts.empty()) return std::nullopt;
  return std::move(parts[0]);
}

std::vector<std::string> other_parts(const DataSpec& spec, std::string_view name) {
  std::vector<std::string> others;
  for (const std::string_view part : kPartNames) {
    bool is_there = part == "train" || !spec.option(part == "test" ? "test" : "val").empty();
    if (spec.is_images()) is_there = !path_of_part(spec, part).empty();
    if (is_collection(spec)) is_there = part != "validation";
    if (spec.kind == "npz" && part == "test") is_there = spec.options.empty() && data::npz_has_test(spec.path);
    if (part != name && is_there) others.emplace_back(part);
  }
  return others;
}

std::vector<StoredPart> open_parts(const DataSpec& spec) { return open_named(spec, kPartNames); }

}  // namespace concord::cli
