// concord search: many trainings of a network with other settings, on one device or several.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "concord/cli/counted.hpp"
#include "concord/cli/input_files.hpp"
#include "concord/cli/launch.hpp"
#include "concord/cli/options.hpp"
#include "concord/cli/search/ask_tell.hpp"
#include "concord/cli/search/search_report.hpp"
#include "concord/cli/search/trial_training.hpp"
#include "concord/collective/world.hpp"
#include "concord/core/atomic_file.hpp"
#include "concord/core/check.hpp"
#include "concord/core/human_bytes.hpp"
#include "concord/search/scheduler.hpp"

namespace concord::cli {
namespace {

struct SearchArguments {
  TrainingRecipe recipe;
  TraceOption trace;
  ValidationOptions validation;
  std::string space, scheduler = "random", monitor = "loss", out;
  search::SchedulerOptions how;
  DevicesOption devices;
  const CLI::App* command = nullptr;
  bool asks = false;
  bool quiet = false;
  bool json = false;

  [[nodiscard]] bool has_option(const char* option) const { return command->get_option(option)->count() > 0; }
};

search::SchedulerKind scheduler_kind(const std::string& name) {
  if (name == "grid") return search::SchedulerKind::grid;
  if (name == "asha") return search::SchedulerKind::asha;
  return name == "tpe" ? search::SchedulerKind::tpe : search::SchedulerKind::random;
}

void check_search_options(const SearchArguments& options) {
  for (const char* const option : {"--space", "--scheduler", "--trials", "--eta", "--min-epochs", "--json"}) {
    CONCORD_CHECK(!options.asks || !options.has_option(option), ArgumentError,
                  "{}: with --ask-tell another program chooses the settings, and gets the results", option);
  }
  CONCORD_CHECK(!collective::world_of_environment(), ArgumentError,
                "search trains on all of its --devices by itself: start it once, not as the ranks of one training");
  CONCORD_CHECK(options.asks || options.has_option("--space"), ArgumentError,
                "--space is missing: what is to be searched, such as --space 'lr=log(1e-4,1e-1) batch={{32,64}}'");
  const bool is_asha = options.scheduler == "asha";
  for (const char* const option : {"--eta", "--min-epochs"}) {
    CONCORD_CHECK(is_asha || !options.has_option(option), ArgumentError, "{} is for --scheduler asha", option);
  }
  CONCORD_CHECK(options.scheduler != "grid" || !options.has_option("--trials"), ArgumentError,
                "--trials: a grid has a trial for each combination; shorten the lists of --space instead");
  CONCORD_CHECK(!is_asha || options.recipe.patience == 0, ArgumentError,
                "--patience: asha decides by itself which trials go on");
  CONCORD_CHECK(options.validation.source != "none", ArgumentError,
                "--validate none: trials are compared by their validation");
  options.validation.check();
  CONCORD_CHECK(options.recipe.fit.max_steps == 0, ArgumentError,
                "--max-steps: trials have epochs; use --epochs, and for fewer samples list= or a smaller set");
}

/// The options of training that were given, as text: another training is another search.
std::string given_options(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* const option : command.get_options()) {
    const std::string name = option->get_single_name();
    constexpr std::array kOthers{"model",  "data",  "space",   "scheduler", "eta",           "min-epochs",
                                 "epochs", "seed",  "monitor", "trials",    "devices",       "out",
                                 "json",   "quiet", "trace",   "threads",   "loader-threads"};
    if (option->count() == 0 || std::ranges::find(kOthers, name) != kOthers.end()) continue;
    text += fmt::format("{}--{} {}", text.empty() ? "" : " ", name, fmt::join(option->results(), " "));
  }
  return text;
}

std::vector<DevicePtr> open_devices(const DevicesOption& named) {
  std::vector<DevicePtr> devices;
  if (named.selectors.empty()) return {Device::open("")};
  for (const DeviceInfo& info : named.devices()) devices.push_back(Device::open(info.id));
  return devices;
}

/// A folder that goes away with the object.
class TemporaryCheckpoints {
 public:
  TemporaryCheckpoints() {
    std::string name = (std::filesystem::temp_directory_path() / "concord-search-XXXXXX").string();
    CONCORD_CHECK(::mkdtemp(name.data()) != nullptr, IoError, "{}: cannot be made", name);
    path_ = name;
  }
  TemporaryCheckpoints(const TemporaryCheckpoints&) = delete;
  TemporaryCheckpoints& operator=(const TemporaryCheckpoints&) = delete;
  ~TemporaryCheckpoints() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Checkpoints without a journal belong to no search.
void remove_old_checkpoints(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("trial-") && name.ends_with(".ckpt")) std::filesystem::remove(entry.path());
  }
}

search::Identity identity_of(const SearchArguments& options, const TrialTraining& training) {
  const search::SchedulerOptions& how = options.how;
  return {{"network", options.recipe.training.model},
          {"data", options.recipe.data.text},
          {"samples", training.text_of_data()},
          {"space", options.space},
          {"scheduler", options.scheduler},
          {"eta", fmt::format("{}", how.eta)},
          {"min-epochs", fmt::format("{}", how.min_epochs)},
          {"epochs", fmt::format("{}", how.epochs)},
          {"seed", fmt::format("{}", how.seed)},
          {"monitor", options.monitor},
          {"options", given_options(*options.command)}};
}

/// One line for the end of a rung.
std::string progress_line(const search::Job& job, const search::Trial& trial, const search::Measured& measured,
                          bool is_best) {
  std::string metrics = fmt::format("loss {:.4g}", measured.at.loss);
  if (measured.at.accuracy) metrics += fmt::format("  accuracy {:.2f} %", 100 * *measured.at.accuracy);
  return fmt::format("trial {}  {}  {}  {}  {:.1f} s  {}{}", job.trial, settings_text(job.settings),
                     counted(job.epochs, "epoch"), metrics, trial.seconds, trial.device,
                     is_best ? "  the best so far" : "");
}

/// Trains until all is done or a signal comes.
void train_trials(search::Study& study, TrialTraining& training, const std::vector<DevicePtr>& devices) {
  search::run_workers(study, devices.size(), [&](std::size_t worker) {
    const DevicePtr& device = devices[worker];
    while (const std::optional<search::Job> job = study.take(device->info().id)) {
      if (!training.run(study, *job, device) || stop_requested()) study.stop();
    }
  });
}

void print_search(const SearchReport& report, const SearchArguments& options, std::size_t devices) {
  if (!options.out.empty()) {
    const std::string page = search_page(report);
    write_file_atomically(std::filesystem::path(options.out) / "search.html", std::as_bytes(std::span(page)));
  }
  if (options.json) {
    std::cout << search_json(report).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
    return;
  }
  std::cout << search_table(report);
  if (report.uploaded_bytes > 0) {
    std::cout << fmt::format("{} of data were uploaded to {}\n", human_bytes(report.uploaded_bytes),
                             counted(devices, "device"));
  }
}

constexpr const char* kJournalFile = "journal.jsonl";

SearchMonitor monitor_of(const SearchArguments& options) {
  return options.monitor == "loss" ? SearchMonitor::loss : SearchMonitor::accuracy;
}

/// Of trials that are not in a journal, only the best weights are kept, with their score.
void run_ask_tell(SearchArguments& options) {
  const std::filesystem::path folder = options.out;
  if (!folder.empty()) {
    std::filesystem::create_directories(folder);
    CONCORD_CHECK(!std::filesystem::exists(folder / kJournalFile), ArgumentError,
                  "--out {}: there is another search in this folder", options.out);
    remove_old_checkpoints(folder);
  }
  const SearchMonitor monitor = monitor_of(options);
  const std::optional<double> best = folder.empty() ? std::nullopt : score_of_best(folder / kBestFile, monitor);
  const std::vector<DevicePtr> devices = open_devices(options.devices);
  TrialTraining training(options.recipe, options.validation, monitor, folder, !folder.empty());
  catch_signals();
  ask_tell(STDIN_FILENO, std::cout, training, devices, options.recipe.fit.epochs, monitor, best);
}

void run_search(SearchArguments& options) {
  check_search_options(options);
  if (options.asks) return run_ask_tell(options);
  const search::Space space = search::Space::parse(options.space);
  check_space(space, options.recipe, *options.command);
  options.how.kind = scheduler_kind(options.scheduler);
  options.how.seed = options.recipe.training.seed;
  options.how.epochs = options.recipe.fit.epochs;
  auto scheduler = search::make_scheduler(space, options.how);
  if (!options.out.empty()) {
    std::filesystem::create_directories(options.out);
    const std::filesystem::path out = options.out;
    CONCORD_CHECK(std::filesystem::exists(out / kJournalFile) || !std::filesystem::exists(out / kBestFile),
                  ArgumentError, "--out {}: there is {} of another search in this folder", options.out, kBestFile);
  }
  std::optional<TemporaryCheckpoints> temporary;
  if (options.out.empty() && options.scheduler == "asha") temporary.emplace();
  const std::filesystem::path folder = temporary ? temporary->path() : std::filesystem::path(options.out);

  const std::vector<DevicePtr> devices = open_devices(options.devices);
  for (const DevicePtr& device : devices) options.recipe.precision.warn_of(device->info());
  const SearchMonitor monitor = monitor_of(options);
  TrialTraining training(options.recipe, options.validation, monitor, folder, !options.out.empty());
  std::optional<search::Journal> journal;
  if (!options.out.empty()) {
    journal.emplace(folder / kJournalFile, identity_of(options, training));
    if (journal->events().empty()) remove_old_checkpoints(folder);
  }
  search::Study study(std::move(scheduler), journal ? &*journal : nullptr);
  std::vector<std::string> names;
  for (const DevicePtr& device : devices) names.push_back(device->info().id);
  say(fmt::format("{} on {}: {}; {} on {}", options.recipe.training.model, options.recipe.data.text,
                  training.text_of_data(), options.scheduler, fmt::join(names, ", ")));
  if (!study.trials().empty()) {
    say(fmt::format("goes on after {} of {}", counted(study.trials().size(), "trial"), options.out));
  }
  if (!options.quiet) {
    study.watch([](const search::Job& job, const search::Trial& trial, const search::Measured& measured, bool is_best) {
      say(progress_line(job, trial, measured, is_best));
    });
  }
  catch_signals();
  const auto start = std::chrono::steady_clock::now();
  train_trials(study, training, devices);
  if (study.is_done()) training.remove_checkpoints(study);
  const SearchReport report{options.recipe.training.model,
                            options.recipe.data.text,
                            options.scheduler,
                            space,
                            study,
                            monitor,
                            training.uploaded_bytes(),
                            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  print_search(report, options, devices.size());
  if (!study.is_done()) {
    say(options.out.empty() ? "interrupted; without --out the search cannot be continued"
                            : "interrupted; the same command continues it");
    return;
  }
  CONCORD_CHECK(!study.ranking().empty(), Error, "every trial failed");
}

}  // namespace

void add_search(CLI::App& app) {
  CLI::App* command = app.add_subcommand("search", "Train a network with many settings, and find the best ones");
  const auto options = std::make_shared<SearchArguments>();
  options->command = command;
  options->recipe.training.add_model(*command);
  add_threads(*command);
  options->devices.add(*command);
  options->devices.option->description(
      "Devices that train trials, each one at a time: all, or selectors with commas between, such as opencl:gpu for "
      "every GPU [$CONCORD_DEVICE, else auto]");
  options->recipe.add(*command);
  command->get_option("--max-steps")->group("");  // refused: trials have epochs
  command->add_option("--space", options->space,
                      "What is searched: lr=log(1e-4,1e-1) batch={32,64} depth=[2,6]; options of training and sizes of "
                      "the network; [a,b,n] has n values");
  command
      ->add_option("--scheduler", options->scheduler,
                   "Random settings, all combinations (grid), random ones of which the best are trained longer "
                   "(asha), or settings near the best so far (tpe)")
      ->capture_default_str()
      ->check(one_of({"random", "grid", "asha", "tpe"}));
  command->add_option("--trials", options->how.trials, "Number of trials; a grid has all combinations")
      ->capture_default_str()
      ->check(count());
  command->add_option("--eta", options->how.eta, "asha promotes one in so many trials of a rung")
      ->capture_default_str()
      ->check(whole(2, 1000));
  command->add_option("--min-epochs", options->how.min_epochs, "Epochs of asha's first rung")
      ->capture_default_str()
      ->check(count());
  command->add_option("--monitor", options->monitor, "What of the validation decides")
      ->capture_default_str()
      ->check(one_of({"loss", "accuracy"}));
  command
      ->add_option("--out", options->out,
                   "Folder of the journal, the page search.html and best.safetensors; the same command continues the "
                   "search that is there")
      ->check(file_name());
  command->add_flag("--ask-tell", options->asks,
                    "Train with settings from standard input instead, a line of JSON for each trial, and answer with "
                    "its result: for an optimizer in another program");
  options->validation.add(*command);
  options->trace.add(*command);
  command->add_flag("--quiet", options->quiet, "Print no progress");
  command->add_flag("--json", options->json, "Print the trials as JSON");
  command->callback([options] {
    options->trace.around(InputFiles().add_data(options->recipe.data.text).add(options->recipe.training.model),
                          [&] { run_search(*options); });
  });
}

}  // namespace concord::cli
