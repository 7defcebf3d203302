// Batches that are filled with copies of a sample.
#include "concord/cli/predict/outputs.hpp"

#include <algorithm>
#include <numeric>

#include "concord/data/selection.hpp"

namespace concord::cli {
namespace {

/// How many copies fill the last batch.
std::int64_t missing_samples(const Dataset& samples, const SavedNetwork& saved) {
  const std::int64_t fixed = fixed_batch(*saved.model);
  return fixed == 0 ? 0 : (fixed - samples.size() % fixed) % fixed;
}

Dataset filled_up(const Dataset& samples, std::int64_t copies) {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(samples.size() + copies));
  std::iota(rows.begin(), rows.end(), 0);
  std::fill(rows.begin() + samples.size(), rows.end(), static_cast<std::int32_t>(samples.size() - 1));
  return data::read_rows(samples, rows);
}

Tensor first_rows(const Tensor& outputs, std::int64_t count) {
  std::vector<std::int64_t> dims(outputs.shape().dims().begin(), outputs.shape().dims().end());
  dims[0] = count;
  Tensor kept(outputs.dtype(), Shape(std::move(dims)));
  std::ranges::copy(outputs.bytes().first(kept.bytes().size()), kept.bytes().begin());
  return kept;
}

}  // namespace

Tensor outputs_of(Trainer& trainer, const Dataset& samples, const PredictArguments& options,
                  const SavedNetwork& saved) {
  const std::int64_t missing = missing_samples(samples, saved);
  if (missing == 0) return trainer.predict(samples, options.batch);
  return first_rows(trainer.predict(filled_up(samples, missing), options.batch), samples.size());
}

std::map<std::string, Tensor> named_outputs_of(Trainer& trainer, const Dataset& samples,
                                               const PredictArguments& options, const SavedNetwork& saved) {
  const std::int64_t missing = missing_samples(samples, saved);
  if (missing == 0) return trainer.predict_values(samples, options.batch);
  std::map<std::string, Tensor> outputs = trainer.predict_values(filled_up(samples, missing), options.batch);
  for (auto& [name, values] : outputs) values = first_rows(values, samples.size());
  return outputs;
}

}  // namespace concord::cli
