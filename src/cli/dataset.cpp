// Parts of data sets, as a network takes them (dataset_arrays.cpp: arrays; dataset_network.cpp: the network for them).
#include "concord/cli/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "concord/cli/audio_data.hpp"
#include "concord/cli/bytes.hpp"
#include "concord/cli/command.hpp"
#include "concord/cli/counted.hpp"
#include "concord/cli/data_parts.hpp"
#include "concord/cli/image_data.hpp"
#include "concord/cli/model_file.hpp"
#include "concord/cli/random_data.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/data/image/image_samples.hpp"
#include "concord/data/image/mask_classes.hpp"
#include "concord/data/in_memory.hpp"

namespace concord::cli {
DataSource::DataSource(DataOptions options, const models::Model& model, std::uint64_t seed, Trained trained)
    : options_(std::move(options)),
      spec_(DataSpec::parse(options_.text)),
      model_(model),
      seed_(seed),
      trained_(std::move(trained)) {
  const bool is_text = spec_.kind == "text";
  CONCORD_CHECK(is_text == (model.task == models::Task::language) || spec_.kind == "random", ArgumentError,
                "{} is a model for {}; it cannot be trained on {}", model.name, models::name_of(model.task),
                spec_.text);
  CONCORD_CHECK(spec_.is_images() || (options_.image == 0 && options_.resize == 0 && options_.mean.empty()),
                ArgumentError, "--image, --resize and --mean are for files of images; {} data has none", spec_.kind);
  if (spec_.kind == "folder") require_masks(spec_, has_masks());
  CONCORD_CHECK(spec_.is_images() || options_.cache.empty(), ArgumentError,
                "--cache is for files of images; {} data has none", spec_.kind);
  if (spec_.kind == "audio") check_audio_fits(spec_, trained_);
  if (spec_.is_images()) advise_normalisation(options_, model_, trained_);
  if (trained_.preprocessing) class_names_ = trained_.preprocessing->class_names;
  if (class_names_.empty() && !has_masks() && !trained_.has_targets) numbered_classes_ = trained_.classes;
}

DataSource::~DataSource() = default;

std::optional<data::ImageTransform> DataSource::transform() const {
  if (!spec_.is_images()) return std::nullopt;
  return image_transform(options_, model_, trained_);
}

const data::ImageSet* DataSource::images(std::string_view name) {
  if (const auto found = images_.find(name); found != images_.end()) {
    return found->second ? &*found->second : nullptr;
  }
  std::optional<data::ImageSet>& set = images_[std::string(name)];
  const std::filesystem::path path = path_of_part(spec_, name);
  if (path.empty()) return nullptr;
  const timeline::Span span("open data set");
  CONCORD_CHECK(has_masks() || spec_.kind != "folder" || model_.task != models::Task::segmentation, ArgumentError,
                "{} is a model for {}, and {} has no masks: add masks=DIR and classes=N", model_.name,
                models::name_of(model_.task), spec_.text);
  data::ImageOptions how{.class_names = class_names_, .numbered_classes = numbered_classes_};
  if (name == "train") how.list = spec_.option("list");
  how.masks = masks_of_part(spec_, name);
  how.masks_in_shards = has_masks();
  how.mask_classes = mask_classes(spec_, model_, trained_);
  if (spec_.kind == "folder") set = data::folder(path, how);
  if (spec_.kind == "lmdb") set = data::lmdb(path, how);
  if (spec_.kind == "tar") set = data::tar(path.string(), how);
  CONCORD_CHECK(set->has_masks() == has_masks(), ArgumentError,
                "{} is a model for {}, and no sample of {} has a mask (seg.png or mask.png in its shards)", model_.name,
                models::name_of(model_.task), set->name());
  take_classes(*set);
  if (has_masks() && !options_.may_lack_labels) {
    const SharedSamples plain = set->with(*transform());
    data::check_classes_in_masks(dynamic_cast<const data::ImageSamples&>(*plain).records(),
                                 name != "train" || !options_.is_trained_on);
  }
  if (!options_.cache.empty()) {
    if (!cache_budget_) cache_budget_ = parse_bytes(options_.cache);
    set = set->cached(*cache_budget_, options_.cache_directory, transform()->channels);
  }
  return &*set;
}

void DataSource::take_classes(const data::ImageSet& set) {
  if (knows_classes()) return;
  class_names_ = set.class_names();
  if (class_names_.empty() && !set.labels().empty()) numbered_classes_ = set.labels()[0].classes;
}

bool DataSource::knows_classes() const { return has_masks() || !class_names_.empty() || numbered_classes_ > 0; }

SharedSamples DataSource::augmented(std::string_view name, const data::ImageAugmentation& augmentation) {
  if (!spec_.is_images()) {
    SharedSamples samples = part(name);
    return !samples || augmentation.is_empty() ? samples : augmented_arrays(*samples, augmentation);
  }
  if (name != "train" && !knows_classes()) static_cast<void>(images("train"));  // its classes count
  const data::ImageSet* const set = images(name);
  if (set == nullptr) return {};
  data::ImageTransform how = *transform();
  how.augmentation = augmentation;
  SharedSamples samples = set->with(how);
  check_fits(*samples);
  return samples;
}

SharedSamples DataSource::part(std::string_view name) {
  if (spec_.is_images()) return augmented(name, {});
  const timeline::Span span("read data set");
  SharedSamples samples = spec_.kind == "random" ? read_random(name) : read(name);
  if (samples && spec_.kind != "random" && spec_.kind != "text") check_fits(*samples);
  return samples;
}

namespace {

constexpr std::string_view kWholeText = "all";

}  // namespace

DataSource::Evaluated DataSource::evaluated(std::string_view split, bool is_given) {
  const bool is_whole = spec_.kind == "text" && !is_given;
  if (is_whole) split = kWholeText;
  SharedSamples samples = part(split);
  if (is_whole) {
    say(fmt::format("the whole text is taken, {}; --split test takes its end, which trainings on it leave out",
                    counted(samples->size(), "sample")));
  }
  if (samples || split == "train") return {samples, std::string(split)};
  samples = part("train");
  log(LogLevel::warning, fmt::format("{} has no {} part: the whole set is taken, {}", spec_.text, split,
                                     counted(samples->size(), "sample")));
  return {samples, "all"};
}

namespace {

/// The number of `random,samples=N`.
std::int64_t samples_of(const std::string& text) {
  const auto samples = number_in_text<std::int32_t>(text);
  CONCORD_CHECK(samples && *samples >= 1, ArgumentError,
                "random,samples={}: it must be a number of samples from 1 to 2^31 - 1", text);
  return *samples;
}

}  // namespace

SharedSamples DataSource::read_random(std::string_view name) const {
  constexpr std::int64_t kRandomTrain = 4096, kRandomTest = 1024, kMostValues = std::int64_t{1} << 26;
  if (name == "validation") return {};
  CONCORD_CHECK(has_published_sample(model_), ArgumentError,
                "{}: random data needs the sizes of a sample, and the file leaves some of {} open; give other data",
                model_.name, file_of(model_)->inputs()[0].str());
  // Both splits are parts of one set, so that what is learned from the first holds for the second.
  const Shape sample = trained_sample(model_, trained_);
  const std::int64_t most = std::max<std::int64_t>(64, kMostValues / sample.elements());
  const std::string wanted = spec_.option("samples");
  const std::int64_t train = wanted.empty() ? std::min(kRandomTrain, most) : samples_of(wanted);
  const std::int64_t test = std::min(kRandomTest, most);
  const Dataset all = random_data(model_, trained_, sample, train + test, seed_);
  return name == "train" ? data::slice(all, 0, train) : data::slice(all, train, test);
}

data::CsvOptions DataSource::table_options() const {
  data::CsvOptions how = csv_options_of(spec_);
  how.bad = options_.skips_bad ? data::BadRows::skip : data::BadRows::fail;
  return how;
}

SharedSamples DataSource::read_table(std::string_view name) {
  const std::string path = name == "train" ? spec_.path : spec_.option(name == "test" ? "test" : "val");
  if (path.empty()) return {};
  if (name != "train" && !trained_.table) static_cast<void>(read_table("train"));  // its columns count
  const data::CsvOptions how = table_options();
  if (trained_.table) {
    if (!table_) check_encoding_fits(how, *trained_.table);
    Dataset samples = data::csv(path, how, &*trained_.table).first;
    check_labels(samples, path, *trained_.table);
    return samples;
  }
  CONCORD_CHECK(!how.labels.empty() || !how.targets.empty(), ArgumentError,
                "csv: which column is to be predicted? csv:{},label=COLUMN for classes, target=COLUMN for numbers",
                spec_.path);
  table_ = data::read_csv(path, how);
  std::vector<std::int32_t> rows;
  if (rows_of_) rows = rows_of_(table_->rows);
  return fitted(rows);
}

SharedSamples DataSource::fitted(std::span<const std::int32_t> rows) {
  CONCORD_CHECK(is_fitted(), ArgumentError, "{} data is not fitted", spec_.kind);
  if (!table_) table_ = data::read_csv(spec_.path, table_options());
  trained_.table = data::fit_csv(*table_, table_options(), rows);
  SharedSamples samples = data::encode_csv(*table_, *trained_.table);
  check_fits(*samples);
  return samples;
}

SharedSamples DataSource::read_audio(std::string_view name) {
  const std::string path = name == "train" ? spec_.path : spec_.option(name == "test" ? "test" : "val");
  if (path.empty()) return {};
  if (name != "train" && !trained_.audio) static_cast<void>(read_audio("train"));  // its alphabet counts
  data::AudioOptions how = audio_options(spec_, model_, trained_);
  how.bad_samples = options_.skips_bad ? data::BadSamples::skip : data::BadSamples::fail;
  data::AudioSet set = data::audio(path, how);
  check_fits_audio(set.samples->feature_specs()[0].spec.shape, model_);
  trained_.audio = std::move(set.features);
  trained_.alphabet = std::move(set.alphabet);
  return std::move(set.samples);
}

SharedSamples DataSource::read_text(std::string_view name) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::exists(spec_.path)) files.emplace_back(spec_.path);
  if (files.empty()) {
    for (const std::string& file : split(spec_.path, '+')) files.emplace_back(file);
  }
  const std::string vocab = spec_.option("vocab"), merges = spec_.option("merges");
  CONCORD_CHECK(vocab.empty() == merges.empty(), ArgumentError, "text: vocab and merges belong together");
  if (!vocab.empty()) {
    data::Bpe given = data::Bpe::read(vocab, merges);
    const bool is_same = trained_.bpe
                             ? given.vocab() == trained_.bpe->vocab() && given.merges() == trained_.bpe->merges()
                             : trained_.alphabet.empty();
    CONCORD_CHECK(is_same, ArgumentError,
                  "text: the weights were trained with other tokens than those of vocab and merges; leave the two out");
    trained_.bpe = std::move(given);
  }
  const bool is_whole = name == kWholeText;
  const double rest = is_whole ? 0 : data::CharacterOptions().validation_part;
  if (trained_.bpe) {
    data::Tokens text = data::tokens(files, *trained_.bpe, {.length = model_.input[0], .validation_part = rest});
    return is_whole || name == "train" ? std::move(text.train) : std::move(text.validation);
  }
  data::Characters text =
      data::characters(files, {.length = model_.input[0], .validation_part = rest, .alphabet = trained_.alphabet});
  trained_.alphabet = text.alphabet;
  return is_whole || name == "train" ? text.train : text.validation;
}

SharedSamples DataSource::read(std::string_view name) {
  if (spec_.kind == "csv") return read_table(name);
  if (spec_.kind == "audio") return read_audio(name);
  if (name == "validation") return {};
  if (spec_.kind == "npy" || spec_.kind == "npz") return read_arrays(name);
  if (spec_.kind == "text") return read_text(name);
  return read_collection(spec_, name);
}

}  // namespace concord::cli
