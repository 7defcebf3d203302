// Reading --parallel.
#include "concord/cli/parallel.hpp"

#include <fmt/format.h>

#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"

namespace concord::cli {

void ParallelOption::add(CLI::App& command) {
  command.add_option("--parallel", text,
                     "Cut the network into stages, one for each of --devices: pipeline=2,micro=8 for 2 stages and "
                     "updates of 8 batches. Without it, each device trains the whole network on other batches");
}

Pipeline ParallelOption::pipeline() const {
  Pipeline pipeline;
  if (text.empty()) return pipeline;
  for (const std::string& word : split(text, ',')) {
    const std::size_t equal = word.find('=');
    const std::string key = word.substr(0, equal);
    CONCORD_CHECK(key == "pipeline" || key == "micro", ArgumentError,
                  "--parallel {}: '{}' is unknown; it must be pipeline=STAGES,micro=BATCHES", text, key);
    int& number = key == "micro" ? pipeline.micro : pipeline.stages;
    const auto given = number_in_text<int>(equal == std::string::npos ? "" : std::string_view(word).substr(equal + 1));
    CONCORD_CHECK(given && *given >= 1, ArgumentError, "--parallel {}: {} needs a number of 1 or more", text, key);
    CONCORD_CHECK(number == 0, ArgumentError, "--parallel {}: {} is given twice", text, key);
    number = *given;
  }
  CONCORD_CHECK(pipeline.stages >= 2, ArgumentError, "--parallel {}: pipeline needs at least 2 stages", text);
  CONCORD_CHECK(pipeline.micro >= 2, ArgumentError,
                "--parallel {}: micro needs at least 2 batches an update; with fewer, only one device works at a time",
                text);
  return pipeline;
}

void ParallelOption::check(std::size_t devices, int accumulate) const {
  const Pipeline wanted = pipeline();
  if (!wanted.is_on()) return;
  CONCORD_CHECK(devices == 0 || std::cmp_equal(devices, wanted.stages), ArgumentError,
                "--parallel {}: {} stages need {} devices, one for each stage; --devices gives {}", text, wanted.stages,
                wanted.stages, devices);
  CONCORD_CHECK(accumulate == 1, ArgumentError,
                "--parallel {}: micro is the number of batches an update; --accumulate {} cannot be used with it", text,
                accumulate);
}

}  // namespace concord::cli
