// The data that a command works on: what --data names, prepared for a network.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "concord/cli/data_options.hpp"
#include "concord/cli/data_spec.hpp"
#include "concord/cli/label_outputs.hpp"
#include "concord/cli/trained.hpp"
#include "concord/concord.hpp"

namespace concord::cli {

/// A data set for a network. Files are opened when a part is asked for.
class DataSource {
 public:
  /// `trained` is what the weights say that the network starts with; its classes and its preprocessing hold where
  /// options do not say otherwise. Throws as DataSpec::parse.
  DataSource(DataOptions options, const models::Model& model, std::uint64_t seed, Trained trained = {});
  ~DataSource();

  /// The preparation of a table is fitted on these rows of the training part, unless the weights have one. `rows_of`
  /// gets the number of rows; for all rows it need not be set. Call it before `part`.
  void fit_on(std::function<std::vector<std::int32_t>(std::int64_t rows)> rows_of) { rows_of_ = std::move(rows_of); }
  /// Whether `fitted` prepares the training part anew for other rows.
  [[nodiscard]] bool is_fitted() const { return spec_.kind == "csv"; }
  /// The training part, fitted on these rows: for folds.
  [[nodiscard]] SharedSamples fitted(std::span<const std::int32_t> rows);

  /// The part "train", "validation" or "test"; none if the set does not come in such a part. Throws what reading
  /// throws, and ArgumentError if the samples or their labels do not fit the network.
  [[nodiscard]] SharedSamples part(std::string_view name);
  /// The same with the augmentation of `train`.
  [[nodiscard]] SharedSamples augmented(std::string_view name, const data::ImageAugmentation& augmentation);
  /// The part `split`, or everything, "all", where the set does not come in parts, or is a text and the user has given
  /// no part.
  struct Evaluated {
    SharedSamples samples;
    std::string part;
  };
  [[nodiscard]] Evaluated evaluated(std::string_view split, bool is_given);

  /// The network for these samples: as published, but for the words of a language model, and for the classes and the
  /// size of images of the user's own.
  [[nodiscard]] models::Variant variant_for(const Samples& samples) const;
  [[nodiscard]] std::shared_ptr<nn::Module> network_for(const Samples& samples) const;
  /// The network for images whose classes are not known, only how they are prepared.
  [[nodiscard]] std::shared_ptr<nn::Module> network_for_images() const;
  /// The outputs of a network for several labels or targets of a table; else none.
  [[nodiscard]] std::vector<LabelOutput> label_outputs() const;
  /// A network of `variant`, with an output for each of these.
  [[nodiscard]] std::shared_ptr<nn::Module> make(const models::Variant& variant) const;
  /// What a network is trained for on these samples: as objective_of, but numbers as targets by their squared error.
  [[nodiscard]] Objective objective_for(const Samples& samples, const models::Variant& variant,
                                        const loss::CrossEntropy& cross_entropy = {}) const;
  /// Whether the network and its loss are those that the name of the network and its classes tell: no masks, several
  /// labels, or numbers in units of the data.
  [[nodiscard]] bool is_told_by_name(const Samples& samples) const;
  /// For the metadata of weights that are trained on `samples`.
  [[nodiscard]] Trained trained(const Samples& samples) const;
  [[nodiscard]] const DataSpec& spec() const { return spec_; }
  /// Whether other networks get other samples, such as images of another size.
  [[nodiscard]] bool depends_on_network() const;
  /// How images are prepared; nothing for other data.
  [[nodiscard]] std::optional<data::ImageTransform> transform() const;

 private:
  [[nodiscard]] SharedSamples read(std::string_view name);
  [[nodiscard]] SharedSamples read_arrays(std::string_view name) const;
  [[nodiscard]] SharedSamples read_table(std::string_view name);
  [[nodiscard]] data::CsvOptions table_options() const;
  [[nodiscard]] SharedSamples read_audio(std::string_view name);
  [[nodiscard]] SharedSamples read_text(std::string_view name);
  [[nodiscard]] SharedSamples read_random(std::string_view name) const;
  [[nodiscard]] const data::ImageSet* images(std::string_view name);
  /// The classes of the training part hold for the others.
  void take_classes(const data::ImageSet& set);
  [[nodiscard]] bool knows_classes() const;
  void check_fits(const Samples& samples) const;
  /// Whether the labels are masks: of a folder with masks=, or of shards that are for segmentation.
  [[nodiscard]] bool has_masks() const;
  /// Whether labels of type f32 are to be predicted by a network of the library.
  [[nodiscard]] bool predicts_targets(const Samples& samples) const;
  [[nodiscard]] bool can_change_classes() const;
  void check_takes(nn::Module& network, const Shape& sample) const;

  DataOptions options_;
  DataSpec spec_;
  const models::Model& model_;
  std::uint64_t seed_;
  Trained trained_;
  std::vector<std::string> class_names_;                                      // of images, once known
  int numbered_classes_ = 0;                                                  // of images whose classes have no names
  std::map<std::string, std::optional<data::ImageSet>, std::less<>> images_;  // by part
  std::optional<data::CacheBudget> cache_budget_;                             // of all parts
  std::function<std::vector<std::int32_t>(std::int64_t rows)> rows_of_;
  std::optional<data::CsvTable> table_;  // of the training part, where its encoding is fitted here
};

}  // namespace concord::cli
