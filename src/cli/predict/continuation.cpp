// A window that moves over what was written.
#include "concord/cli/predict/continuation.hpp"

#include <algorithm>

#include "concord/core/check.hpp"

namespace concord::cli {

std::vector<std::vector<std::int32_t>> continuations(Trainer& trainer, const Tensor& samples, std::int64_t count,
                                                     std::int64_t batch) {
  CONCORD_CHECK(samples.dtype() == DType::i32 && samples.shape().rank() == 2, ArgumentError,
                "samples {} are no text that can be continued", samples.shape().str());
  const auto rows = static_cast<std::size_t>(samples.shape()[0]), length = static_cast<std::size_t>(samples.shape()[1]);
  Tensor window(DType::i32, samples.shape());
  std::ranges::copy(samples.bytes(), window.bytes().begin());
  std::vector<std::vector<std::int32_t>> written(rows);
  for (std::int64_t step = 0; step < count; ++step) {
    const Tensor outputs = trainer.predict(window, batch);
    const auto classes = static_cast<std::size_t>(outputs.shape()[-1]);
    const std::size_t places = static_cast<std::size_t>(outputs.elements()) / rows / classes;
    for (std::size_t row = 0; row < rows; ++row) {
      const auto last = outputs.values<float>().subspan(((row + 1) * places - 1) * classes, classes);
      written[row].push_back(static_cast<std::int32_t>(std::ranges::max_element(last) - last.begin()));
      const auto seen = window.values<std::int32_t>().subspan(row * length, length);
      std::ranges::rotate(seen, seen.begin() + 1);
      seen.back() = written[row].back();
    }
  }
  return written;
}

}  // namespace concord::cli
