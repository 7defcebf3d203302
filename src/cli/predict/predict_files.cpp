// Predictions for images in files.
#include <fmt/format.h>

#include "concord/cli/dataset.hpp"
#include "concord/cli/predict/read_rows.hpp"
#include "concord/cli/predict/results.hpp"

namespace concord::cli {
namespace {

/// What the network sees of each row; an unset tensor for one that could not be read.
void add_pictures(const RowsRead& read, std::vector<Tensor>& pictures) {
  std::int64_t good = 0;
  for (const std::string& error : read.errors) {
    pictures.push_back(error.empty() ? picture_in(read.dataset.features, good++, "an image") : Tensor());
  }
}

}  // namespace

Results predict_images(const PredictArguments& options, const SavedNetwork& saved,
                       const std::vector<std::string>& files) {
  DataOptions data = options.data;
  data.text = "folder:.";  // how images are prepared does not depend on the folder
  const DataSource source(data, *saved.model, 1, saved.trained);
  const SharedSamples images = data::image_files({files.begin(), files.end()}).with(*source.transform());
  check_sheet(options, images->size());
  Trainer trainer = trainer_for(options, saved, source.network_for_images(), objective_of(*saved.model));
  Results results;
  if (saved.trained.preprocessing) results.names = saved.trained.preprocessing->class_names;
  for (std::int64_t row = 0; row < images->size();) {
    std::vector<std::int32_t> rows;
    for (; row < images->size() && std::ssize(rows) < options.batch; ++row) {
      rows.push_back(static_cast<std::int32_t>(row));
    }
    const RowsRead read = read_in_parallel(*images, rows);
    if (!options.sheet.empty()) add_pictures(read, results.pictures);
    std::vector<std::size_t> good;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (read.errors[i].empty()) good.push_back(results.predictions.size());
      results.predictions.push_back({images->name_of(rows[i]), {}, {}, read.errors[i]});
    }
    if (good.empty()) continue;
    results.outputs.push_back(trainer.predict(read.dataset, options.batch));
    std::vector<Prediction*> to;
    for (const std::size_t i : good) to.push_back(&results.predictions[i]);
    add_predictions(results.outputs.back(), options.top, to);
  }
  return results;
}

}  // namespace concord::cli
