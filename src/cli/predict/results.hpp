// What `concord predict` is asked for, and what it finds: of images in files, rows of a table, or samples of a data
// set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "concord/cli/options.hpp"
#include "concord/cli/predict/prediction.hpp"
#include "concord/cli/saved_network.hpp"

namespace concord::cli {

struct PredictArguments {
  std::vector<std::string> words;  // the network, its weights, files and folders
  DeviceOption device;
  PrecisionOption precision;
  TraceOption trace;
  std::string weights, split = "test";
  DataOptions data;
  PermitOption permit;
  std::string out, sheet, format = "table";
  std::int64_t first = 0, count = 10, batch = 256, generate = 0;
  std::size_t top = 1;
  bool json = false;
  const CLI::Option *count_option = nullptr, *first_option = nullptr, *split_option = nullptr, *top_option = nullptr,
                    *format_option = nullptr, *batch_option = nullptr;

  [[nodiscard]] bool is_counted() const { return count_option->count() > 0; }
  /// Whether outputs are needed after the predictions are made: for --out, or as pixels of a sheet.
  [[nodiscard]] bool keep_outputs(const models::Model& model) const {
    return !out.empty() || (!sheet.empty() && model.task == models::Task::segmentation);
  }
  /// Throws ArgumentError for --top with a network that `predicts` something else than a class: "predicts numbers".
  void refuse_top(std::string_view predicts) const;
  /// Throws ArgumentError for options that contradict each other, the network, or that there are files.
  void check(const SavedNetwork& saved, bool has_files) const;
};

struct Results {
  std::vector<Prediction> predictions;
  std::vector<std::string> names;  // of classes or numbers
  std::vector<Tensor> outputs;     // of those that have been predicted, in batches, where options need them
  std::vector<Tensor> pictures;    // of each prediction, for a sheet: u8 [C, H, W], unset if it could not be read
  std::string_view unit = "file";
  Scores scores = Scores::logits;  // the outputs of a network for classes
};

/// Images in files, or recordings if the network is for them. One that cannot be read has an error instead of classes.
[[nodiscard]] Results predict_files(const PredictArguments& options, const SavedNetwork& saved,
                                    const std::vector<std::string>& files);
/// Rows of tables in files, numbered from 0, by the encoding of the weights. `data` are options on how they are read.
/// One that cannot be read has an error instead of an answer. Takes `options.count` rows from `options.first` on only
/// of --data.
[[nodiscard]] Results predict_tables(const PredictArguments& options, const SavedNetwork& saved,
                                     const std::vector<std::string>& files);
/// Samples of --data.
[[nodiscard]] Results predict_samples(const PredictArguments& options, const SavedNetwork& saved);

/// --data of this KIND that is only named in messages, for files that are read otherwise.
[[nodiscard]] std::string unread_data(std::string_view kind, const std::vector<std::string>& files);
/// The network with its weights on the device.
[[nodiscard]] Trainer trainer_for(const PredictArguments& options, const SavedNetwork& saved,
                                  std::shared_ptr<nn::Module> network, const Objective& objective);
/// The classes of each row of outputs; of a sequence, of what comes after its end.
void add_predictions(const Tensor& outputs, Scores scores, std::size_t top, const std::vector<Prediction*>& to);
/// Throws ArgumentError if a sheet is wanted and cannot show so many pictures.
void check_sheet(const PredictArguments& options, std::int64_t pictures);
/// Row `row` of u8 pictures [N, C, H, W]. Throws ArgumentError, with the name of the data, for other samples.
[[nodiscard]] Tensor picture_in(const Tensor& features, std::int64_t row, const std::string& data);

}  // namespace concord::cli
