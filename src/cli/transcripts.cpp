// Best paths and labels as text.
#include "concord/cli/transcripts.hpp"

#include <algorithm>
#include <numeric>

#include "concord/core/check.hpp"
#include "concord/data/selection.hpp"

namespace concord::cli {

std::vector<std::string> recognised_texts(const Tensor& outputs, const std::string& alphabet) {
  CONCORD_CHECK(outputs.shape().rank() == 3, ShapeError, "outputs {} are no classes of steps", outputs.shape().str());
  const auto steps = static_cast<std::size_t>(outputs.shape()[1]),
             classes = static_cast<std::size_t>(outputs.shape()[2]);
  const auto logits = outputs.values<float>();
  std::vector<std::string> texts;
  for (std::size_t first = 0; first < logits.size(); first += steps * classes) {
    std::vector<std::int32_t> best(steps);
    for (std::size_t t = 0; t < steps; ++t) {
      const auto step = logits.subspan(first + t * classes, classes);
      best[t] = static_cast<std::int32_t>(std::ranges::max_element(step) - step.begin());
    }
    texts.push_back(data::transcript_of(alphabet, best));
  }
  return texts;
}

std::vector<std::string> transcripts_of(const Tensor& labels, const std::string& alphabet) {
  const auto length = static_cast<std::size_t>(labels.shape()[1]);
  const auto values = labels.values<std::int32_t>();
  std::vector<std::string> texts;
  for (std::size_t first = 0; first < values.size(); first += length) {
    std::vector<std::int32_t> path;  // with blanks, so that a letter may come twice
    for (const std::int32_t label : values.subspan(first, length)) path.insert(path.end(), {label, 0});
    texts.push_back(data::transcript_of(alphabet, path));
  }
  return texts;
}

data::TranscriptErrors transcript_errors(Trainer& trainer, const Samples& samples, const std::string& alphabet,
                                         std::int64_t batch) {
  data::TranscriptErrors errors;
  for (std::int64_t first = 0; first < samples.size(); first += batch) {
    std::vector<std::int32_t> rows(static_cast<std::size_t>(std::min(batch, samples.size() - first)));
    std::iota(rows.begin(), rows.end(), static_cast<std::int32_t>(first));
    const Dataset part = data::read_rows(samples, rows);
    const std::vector<std::string> expected = transcripts_of(part.labels, alphabet);
    const std::vector<std::string> found = recognised_texts(trainer.predict(part, batch), alphabet);
    for (std::size_t i = 0; i < found.size(); ++i) errors.add(expected[i], found[i]);
  }
  return errors;
}

}  // namespace concord::cli
