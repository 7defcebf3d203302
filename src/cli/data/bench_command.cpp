// concord data bench: how many samples a second each stage of reading gives, and what limits them.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "concord/cli/command.hpp"
#include "concord/cli/counted.hpp"
#include "concord/cli/data/bench_stages.hpp"
#include "concord/cli/data/data_command.hpp"
#include "concord/cli/data/rows.hpp"
#include "concord/cli/options.hpp"
#include "concord/cli/validator.hpp"
#include "concord/core/check.hpp"
#include "concord/core/threads.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/image/image_samples.hpp"
#include "concord/data/image/transform.hpp"

namespace concord::cli {
namespace {

struct DataBenchArguments {
  std::string spec, augment = "none";
  std::int64_t image = 224;
  BenchHow how;
  ReaderThreads threads;
  bool json = false, has_image_options = false;
};

/// The samples that a training would read.
SharedSamples samples_of(const StoredPart& part, const DataBenchArguments& options) {
  if (part.images == nullptr) {
    CONCORD_CHECK(!options.has_image_options, ArgumentError, "--image and --augment are for images; {} has none",
                  options.spec);
    return part.samples;
  }
  data::ImageTransform transform;
  transform.height = transform.width = options.image;
  transform.augmentation = data::parse_augment(options.augment);
  if (part.samples && !options.has_image_options) return part.samples;  // in memory, as they are
  return data::images(part.images, transform);
}

std::vector<StageRate> measure_all(const StoredPart& part, const SharedSamples& samples,
                                   const DataBenchArguments& options) {
  const int most = options.threads.get();
  std::vector<StageRate> rates;
  const auto add = [&](StageRate rate) {
    if (stop_requested()) throw StoppedByUser();
    rates.push_back(std::move(rate));
  };
  if (part.images != nullptr) {
    for (const int threads : most > 1 ? std::vector{1, most} : std::vector{1}) {
      add(rate_of_reading(*part.images, threads, options.how));
    }
    add(rate_of_decoding(*part.images, options.how));
  }
  add(rate_of_samples(*samples, options.how));
  for (const int threads : thread_counts(most)) add(rate_of_loader(samples, threads, options.how));
  return rates;
}

std::string stage_title(const std::string& stage) {
  if (stage == "read") return "reading alone";
  if (stage == "decode") return "decoding whole images";
  return stage == "sample" ? "a sample (read to augment)" : "loader, batches";
}

std::string rates_text(const std::vector<StageRate>& rates) {
  std::vector<std::vector<std::string>> rows{{"stage", "threads", "samples/s", "MB/s", "us a sample", "bad"}};
  for (const StageRate& rate : rates) {
    const double each = rate.samples == 0 ? 0 : 1e6 * rate.seconds * rate.threads / static_cast<double>(rate.samples);
    rows.push_back(
        {stage_title(rate.stage), fmt::format("{}", rate.threads), fmt::format("{:.0f}", rate.samples_per_second()),
         fmt::format("{:.1f}", rate.megabytes_per_second()), fmt::format("{:.1f}", each), fmt::format("{}", rate.bad)});
  }
  return table(rows);
}

nlohmann::json rates_json(const std::vector<StageRate>& rates) {
  nlohmann::json json = nlohmann::json::array();
  for (const StageRate& rate : rates) {
    json.push_back({{"stage", rate.stage},
                    {"threads", rate.threads},
                    {"samples", rate.samples},
                    {"seconds", rate.seconds},
                    {"samples_per_second", rate.samples_per_second()},
                    {"megabytes_per_second", rate.megabytes_per_second()},
                    {"bad", rate.bad}});
  }
  return json;
}

void run_data_bench(const DataBenchArguments& options) {
  catch_signals();
  const std::optional<StoredPart> part = open_part(DataSpec::parse(options.spec), "train");
  CONCORD_CHECK(part, ArgumentError, "{} has no train part", options.spec);
  const SharedSamples samples = samples_of(*part, options);
  std::vector<StageRate> rates;
  try {
    rates = measure_all(*part, samples, options);
  } catch (const StoppedByUser&) {
    return say("concord: stopped");
  }
  const int processors = num_threads();
  const std::string limit = limit_of(rates, processors);
  const std::string sample = samples->feature_specs()[0].spec.shape.str();
  if (options.json) {
    std::cout << json_text({{"version", kVersion},
                            {"spec", options.spec},
                            {"samples", samples->size()},
                            {"sample_shape", sample},
                            {"augment", options.augment},
                            {"batch", options.how.batch},
                            {"processors", processors},
                            {"stages", rates_json(rates)},
                            {"limit", limit}});
    return;
  }
  std::cout << fmt::format("{}: {}, read as {}, augmentation {}, batches of {}; {}\n", printable(options.spec),
                           counted(samples->size(), "sample"), sample, options.augment, options.how.batch,
                           counted(processors, "processor"));
  std::cout << rates_text(rates)
            << "MB/s: bytes as stored, of samples and batches their features. Files that were read lately come from "
               "memory.\n"
            << limit << '\n';
}

}  // namespace

void add_data_bench(CLI::App& data) {
  CLI::App* command =
      data.add_subcommand("bench", "Measure reading, decoding, augmentation and the loader, and say what limits them");
  const auto options = std::make_shared<DataBenchArguments>();
  add_spec(*command, options->spec);
  CLI::Option* image = command->add_option("--image", options->image, "Height and width that images are cut to")
                           ->capture_default_str()
                           ->check(whole(1, static_cast<std::uint64_t>(data::kLongestSide)));
  CLI::Option* augment =
      command->add_option("--augment", options->augment, "Augmentation, as in `concord train`: rrc,flip")
          ->capture_default_str()
          ->check(augmentation());
  command->add_option("--batch", options->how.batch, "Samples per batch")->capture_default_str()->check(count());
  options->threads.add(*command);
  command->add_option("--seconds", options->how.seconds, "Seconds to measure each stage")
      ->capture_default_str()
      ->check(positive());
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([=] {
    options->has_image_options = image->count() + augment->count() > 0;
    run_data_bench(*options);
  });
}

}  // namespace concord::cli
