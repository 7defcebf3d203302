// Reading --parallel, --shares, --sync-batch-norm and --gradients.
#include "concord/cli/parallel.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "concord/cli/counted.hpp"
#include "concord/cli/launch.hpp"
#include "concord/cli/validator.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"

namespace concord::cli {

void ParallelOption::add(CLI::App& command) {
  command.add_option("--parallel", text,
                     "Divide the network among --devices: pipeline=2,micro=8 for 2 stages and updates of 8 batches; "
                     "tensor=2 for a part of each transformer block on 2 devices; hybrid=2 for a part of each linear "
                     "layer, and whole convolutions on a part of the batch. Without it, each device trains the whole "
                     "network on other batches");
}

namespace {

/// The number behind "key=".
int number_of(const std::string& text, const std::string& word) {
  const std::size_t equal = word.find('=');
  const auto given = number_in_text<int>(equal == std::string::npos ? "" : std::string_view(word).substr(equal + 1));
  CONCORD_CHECK(given && *given >= 1, ArgumentError, "--parallel {}: {} needs a number of 1 or more", text,
                word.substr(0, equal));
  return *given;
}

}  // namespace

ModelParallel ParallelOption::model_parallel() const {
  const std::string kind = text.substr(0, text.find('='));
  if (kind != "tensor" && kind != "hybrid") return {};
  const int ranks = number_of(text, text);
  CONCORD_CHECK(ranks >= 2, ArgumentError, "--parallel {}: {} needs at least 2 devices", text, kind);
  return {kind == "tensor" ? nn::Division::tensor : nn::Division::hybrid, ranks};
}

Pipeline ParallelOption::pipeline() const {
  Pipeline pipeline;
  if (text.empty() || model_parallel().is_on()) return pipeline;
  for (const std::string& word : split(text, ',')) {
    const std::string key = word.substr(0, word.find('='));
    CONCORD_CHECK(key == "pipeline" || key == "micro", ArgumentError,
                  "--parallel {}: '{}' is unknown; it must be pipeline=STAGES,micro=BATCHES, tensor=DEVICES or "
                  "hybrid=DEVICES",
                  text, key);
    int& number = key == "micro" ? pipeline.micro : pipeline.stages;
    const int given = number_of(text, word);
    CONCORD_CHECK(number == 0, ArgumentError, "--parallel {}: {} is given twice", text, key);
    number = given;
  }
  CONCORD_CHECK(pipeline.stages >= 2, ArgumentError, "--parallel {}: pipeline needs at least 2 stages", text);
  CONCORD_CHECK(pipeline.micro >= 2, ArgumentError,
                "--parallel {}: micro needs at least 2 batches an update; with fewer, only one device works at a time",
                text);
  return pipeline;
}

void ParallelOption::check(std::size_t devices, int accumulate) const {
  const ModelParallel parts = model_parallel();
  CONCORD_CHECK(!parts.is_on() || devices == 0 || std::cmp_equal(devices, parts.ranks), ArgumentError,
                "--parallel {}: {} parts need {} devices, one for each; --devices gives {}", text, parts.ranks,
                parts.ranks, devices);
  const Pipeline wanted = pipeline();
  if (!wanted.is_on()) return;
  CONCORD_CHECK(devices == 0 || std::cmp_equal(devices, wanted.stages), ArgumentError,
                "--parallel {}: {} stages need {} devices, one for each stage; --devices gives {}", text, wanted.stages,
                wanted.stages, devices);
  CONCORD_CHECK(accumulate == 1, ArgumentError,
                "--parallel {}: micro is the number of batches an update; --accumulate {} cannot be used with it", text,
                accumulate);
}

void SharesOption::add(CLI::App& command) {
  command
      .add_option("--shares", text,
                  "Samples of an update for each of --devices: --batch for each (equal), or as many together, by "
                  "measured speed (speed) or in given proportions: 3,1")
      ->capture_default_str();
}

BatchSplit SharesOption::get() const {
  if (text == "equal") return {};
  if (text == "speed") return {.by_speed = true};
  BatchSplit given;
  for (const std::string& word : split(text, ',')) {
    const auto share = number_in_text<double>(word);
    CONCORD_CHECK(share && std::isfinite(*share) && *share > 0, ArgumentError,
                  "--shares {}: it must be equal, speed, or a number above 0 for each device, such as 3,1", text);
    given.shares.push_back(*share);
  }
  return given;
}

void SharesOption::check(std::size_t devices) const {
  const std::size_t shares = get().shares.size();
  CONCORD_CHECK(devices == 0 || shares == 0 || shares == devices, ArgumentError, "--shares {}: {} for {}", text,
                counted(shares, "share"), counted(devices, "device"));
}

void SharingOptions::add(CLI::App& command) {
  parallel.add(command);
  shares.add(command);
  command.add_flag("--sync-batch-norm", sync_batch_norm,
                   "Batch norm by the statistics of the batches of all devices together");
  command
      .add_option("--gradients", gradients,
                  "Precision in which gradients travel between processes; GPUs that read each other's memory use fp32")
      ->capture_default_str()
      ->check(one_of({"fp32", "bf16", "fp16"}));
}

void SharingOptions::check(std::size_t named, bool have_nodes, int accumulate) const {
  const bool is_rank = world_of_rank(have_nodes).has_value();
  const bool is_only_rank = !is_rank && environment(collective::kStoreVariable).has_value();
  const bool is_one = is_only_rank && named <= 1;
  const std::size_t devices = is_one ? 1 : have_nodes ? 0 : named;
  parallel.check(devices, accumulate);
  shares.check(devices);
  CONCORD_CHECK(
      named > 0 || is_rank || is_only_rank || (!shares.get().is_on() && gradients == "fp32" && !sync_batch_norm),
      ArgumentError, "--shares, --gradients and --sync-batch-norm are for several devices; name them with --devices");
  if (parallel.text.empty()) return;
  CONCORD_CHECK(!shares.get().is_on(), ArgumentError,
                "--shares and --parallel cannot be used together: each part of a divided network works on all samples");
  CONCORD_CHECK(gradients == "fp32", ArgumentError,
                "--gradients and --parallel cannot be used together: the devices exchange activations");
  CONCORD_CHECK(!sync_batch_norm, ArgumentError,
                "--sync-batch-norm and --parallel cannot be used together: a pipeline trains one batch after another, "
                "and tensor and hybrid always have the statistics of the whole batch");
}

void SharingOptions::apply(TrainerOptions& options) const {
  options.pipeline = parallel.pipeline();
  options.model_parallel = parallel.model_parallel();
  options.split = shares.get();
  options.sync_batch_norm = sync_batch_norm;
  options.gradients = precision_of(gradients);
}

}  // namespace concord::cli
