// Predictions for images or recordings in files.
#include <fmt/format.h>

#include "concord/cli/dataset.hpp"
#include "concord/cli/predict/answers.hpp"
#include "concord/cli/predict/outputs.hpp"
#include "concord/cli/predict/pixel_classes.hpp"
#include "concord/cli/predict/read_rows.hpp"
#include "concord/cli/predict/results.hpp"
#include "concord/cli/sample_kind.hpp"
#include "concord/cli/transcripts.hpp"
#include "concord/core/check.hpp"
#include "concord/data/audio/recordings.hpp"

namespace concord::cli {
namespace {

/// What the files are to the network.
struct FileSamples {
  SharedSamples samples;
  std::shared_ptr<nn::Module> network;
  std::vector<std::string> class_names;
};

FileSamples open_images(const PredictArguments& options, const SavedNetwork& saved,
                        const std::vector<std::string>& files) {
  DataOptions data = options.data;
  data.text = unread_data("folder", files);  // how images are prepared does not depend on the folder
  const DataSource source(data, *saved.model, 1, saved.trained);
  FileSamples opened{
      data::image_files({files.begin(), files.end()}).with(*source.transform()), source.network_for_images(), {}};
  if (saved.trained.preprocessing) opened.class_names = saved.trained.preprocessing->class_names;
  check_sheet(options, opened.samples->size());
  return opened;
}

FileSamples open_recordings(const PredictArguments& options, const SavedNetwork& saved,
                            const std::vector<std::string>& files) {
  const data::AudioFeatures& features = *saved.trained.audio;
  CONCORD_CHECK(options.sheet.empty(), ArgumentError, "--sheet shows images, and these are recordings");
  const bool is_whole = saved.model->task == models::Task::transcription;
  const models::Variant variant{.classes = file_of(*saved.model) == nullptr ? saved.trained.classes : 0,
                                .input = Shape{1, features.features(), features.frames()}};
  const std::vector<std::string> all = recordings_in(files);
  return {data::recordings({all.begin(), all.end()}, features, is_whole), make_network(*saved.model, variant),
          features.class_names};
}

void add_answers_of_files(const Tensor& outputs, const PredictArguments& options, const SavedNetwork& saved,
                          const std::vector<Prediction*>& to, Results& results) {
  if (saved.model->task == models::Task::segmentation) {
    results.names = names_of_shares(outputs);
    add_pixel_shares(outputs, to);
  } else if (saved.model->task == models::Task::transcription) {
    const std::vector<std::string> texts = recognised_texts(outputs, saved.trained.alphabet);
    for (std::size_t i = 0; i < to.size(); ++i) to[i]->text = texts[i];
  } else if (saved.trained.has_targets) {
    add_numbers(outputs, to);
    results.names = names_of_targets(std::ssize(to[0]->numbers));
  } else {
    add_predictions(outputs, results.scores, options.top, to);
  }
  refuse_not_finite(outputs, to);
}

}  // namespace

Results predict_files(const PredictArguments& options, const SavedNetwork& saved,
                      const std::vector<std::string>& files) {
  const auto [samples, network, class_names] =
      saved.trained.audio ? open_recordings(options, saved, files) : open_images(options, saved, files);
  Trainer trainer = trainer_for(options, saved, network, objective_of(*saved.model));
  Results results;
  results.names = class_names;
  if (gives_probabilities(*saved.model, *network, *samples)) results.scores = Scores::probabilities;
  for (std::int64_t row = 0; row < samples->size();) {
    std::vector<std::int32_t> rows;
    for (; row < samples->size() && std::ssize(rows) < options.batch; ++row) {
      rows.push_back(static_cast<std::int32_t>(row));
    }
    const RowsRead read = read_in_parallel(*samples, rows);
    if (!options.sheet.empty()) add_pictures(read, "an image", results.pictures);
    std::vector<std::size_t> good;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (read.errors[i].empty()) good.push_back(results.predictions.size());
      results.predictions.push_back({.sample = samples->name_of(rows[i]), .error = read.errors[i]});
    }
    if (good.empty()) continue;
    const Tensor outputs = outputs_of(trainer, read.dataset, options, saved);
    std::vector<Prediction*> to;
    for (const std::size_t i : good) to.push_back(&results.predictions[i]);
    add_answers_of_files(outputs, options, saved, to, results);
    if (options.keep_outputs(*saved.model)) results.outputs.push_back(outputs);
  }
  return results;
}

}  // namespace concord::cli
