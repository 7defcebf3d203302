// The training of a trial, its checkpoint and its best weights.
#include "concord/cli/search/trial_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "concord/cli/image_data.hpp"
#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/in_memory.hpp"
#include "concord/data/selection.hpp"
#include "concord/io/checkpoint.hpp"
#include "concord/io/safetensors.hpp"

namespace concord::cli {
namespace {

using TrialClock = std::chrono::steady_clock;
using search::EpochPoint;
using search::Job;
using search::Study;

/// A long rung is not lost where the process is killed.
constexpr std::chrono::seconds kBetweenCheckpoints{30};

double seconds_from(TrialClock::time_point start) {
  return std::chrono::duration<double>(TrialClock::now() - start).count();
}

EpochPoint point_of(std::int64_t epoch, double train_loss, const Metrics& metrics) {
  return {epoch, train_loss, metrics.loss, metrics.accuracy};
}

/// Reports epochs to the study, and writes checkpoints: of the end of a rung, and now and then within it.
class TrialRecorder final : public Callback {
 public:
  TrialRecorder(Study& study, const Job& job, std::filesystem::path checkpoint)
      : study_(study), job_(job), checkpoint_(std::move(checkpoint)) {}

  void on_epoch(TrainingControl& control, const EpochReport& report) override {
    const EpochPoint point = point_of(report.epoch, report.loss, report.validation.value());
    CONCORD_CHECK(std::isfinite(point.loss), NonFinite, "the validation loss is {} after epoch {}", point.loss,
                  point.epoch);
    study_.note_epoch(job_, point);
    if (checkpoint_.empty()) return;
    const bool ends_rung = report.epoch == job_.epochs;
    if (ends_rung ? job_.is_last : TrialClock::now() - written_ < kBetweenCheckpoints) return;
    control.trainer().save_checkpoint(checkpoint_);
    written_ = TrialClock::now();
  }

 private:
  Study& study_;
  const Job& job_;
  std::filesystem::path checkpoint_;
  TrialClock::time_point written_ = TrialClock::now();
};

bool has_class_accuracy(const DataSource& source, const Samples& samples, const models::Model& model) {
  const std::vector<ColumnSpec> labels = samples.label_specs();
  return models::has_cross_entropy(model.task) && source.label_outputs().empty() && !labels.empty() &&
         labels[0].spec.dtype == DType::i32;
}

void remove_checkpoint_file(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!file.empty()) std::filesystem::remove(file, ignored);
}

constexpr const char* kMonitor = "concord.search.monitor";
constexpr const char* kScore = "concord.search.score";

std::string text_of(SearchMonitor monitor) { return monitor == SearchMonitor::loss ? "loss" : "accuracy"; }

}  // namespace

std::optional<double> score_of_best(const std::filesystem::path& file, SearchMonitor monitor) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  const io::SafetensorsFile best(file);
  const auto value = [&](const char* name) {
    const auto found = best.metadata().find(name);
    return found == best.metadata().end() ? std::string() : found->second;
  };
  const std::optional<double> score = number_in_text<double>(value(kScore));
  CONCORD_CHECK(
      score, ArgumentError,
      "{}: these weights have no score of a search, so it is not known whether others are better; use another "
      "folder",
      file.string());
  CONCORD_CHECK(value(kMonitor) == text_of(monitor), ArgumentError,
                "{}: these weights are the best ones by --monitor {}, and this search has --monitor {}; use another "
                "folder",
                file.string(), printable(value(kMonitor)), text_of(monitor));
  return score;
}

/// The samples for networks that take samples of one shape.
struct TrialTraining::Data {
  DataSource source;
  SharedSamples plain, validation;
  std::int64_t held_out = 0;                             // samples of `plain` that are in `validation`
  std::map<std::string, SharedSamples> by_augment = {};  // what is trained on
  std::map<std::string, std::string> metadata = {};      // how it is validated
};

TrialTraining::TrialTraining(const TrainingRecipe& base, ValidationOptions& validation, SearchMonitor monitor,
                             std::filesystem::path folder, bool keeps_best)
    : base_(base),
      validation_(validation),
      monitor_(monitor),
      folder_(std::move(folder)),
      best_file_(keeps_best ? folder_ / kBestFile : std::filesystem::path()) {
  const Data& data = data_for(base_);
  const models::Model& model = find_model(base_.training.model);
  CONCORD_CHECK(monitor_ == SearchMonitor::loss || has_class_accuracy(data.source, *data.plain, model), ArgumentError,
                "--monitor accuracy: {} has no class for each sample; use --monitor loss", data.plain->name);
}

TrialTraining::~TrialTraining() = default;

TrialTraining::Data& TrialTraining::data_for(const TrainingRecipe& recipe) {
  const std::lock_guard lock(mutex_);
  const models::Model& model = find_model(recipe.training.model);
  std::unique_ptr<Data>& data = data_[model.input.str()];
  const std::string& text = base_.data.text;
  if (!data) {
    auto made = std::make_unique<Data>(Data{DataSource(base_.data_options(), model, base_.training.seed), {}, {}});
    DataSource& source = made->source;
    const bool may_use_part = validation_.is_split() && validation_.may_use_part();
    if (validation_.is_split() && (!may_use_part || source.spec().option("val").empty())) {
      source.fit_on([&](std::int64_t rows) {
        return data::split_rows(rows, validation_.held_out_of(text, rows), text, validation_.seed).first;
      });
    }
    made->plain = source.part("train");
    if (validation_.source == "test") {
      made->validation = source.part("test");
      CONCORD_CHECK(made->validation, ArgumentError, "--validate test: {} has no test part", text);
    }
    if (may_use_part) made->validation = source.part("validation");
    if (validation_.is_split()) validation_.note_part(bool(made->validation), text);
    if (!made->validation) {
      made->held_out = validation_.held_out_of(made->plain->name, made->plain->size());
      made->validation = data::split(made->plain, made->held_out, validation_.seed).second;
    }
    made->metadata = validation_.metadata();
    data = std::move(made);
  }
  SharedSamples& train = data->by_augment[recipe.augment];
  if (!train) {
    const data::ImageAugmentation augmentation = data::parse_augment(recipe.augment);
    train = augmentation.is_empty()           ? data->plain
            : data->source.spec().is_images() ? data->source.augmented("train", augmentation)
                                              : augmented_arrays(*data->plain, augmentation);
    if (data->held_out > 0) train = data::split(train, data->held_out, validation_.seed).first;
  }
  return *data;
}

std::string TrialTraining::text_of_data() const {
  const std::lock_guard lock(mutex_);
  const Data& data = *data_.begin()->second;
  return fmt::format("{} samples, {} for validation", data.plain->size() - data.held_out, data.validation->size());
}

std::size_t TrialTraining::uploaded_bytes() const {
  const std::lock_guard lock(mutex_);
  std::vector<const DeviceCopies*> counted;
  std::size_t bytes = 0;
  const auto add = [&](const SharedSamples& samples) {
    const Dataset* const dataset = data::dataset_of(*samples);
    if (dataset == nullptr) return;
    DeviceCopies& copies = *dataset->device_copies;
    if (std::ranges::find(counted, &copies) != counted.end()) return;
    counted.push_back(&copies);
    const std::lock_guard of_copies(copies.mutex);
    bytes += copies.uploaded_bytes;
  };
  for (const auto& [shape, data] : data_) {
    for (const auto& [augment, train] : data->by_augment) add(train);
    add(data->validation);
  }
  return bytes;
}

std::filesystem::path TrialTraining::checkpoint_of(std::int64_t trial) const {
  return folder_.empty() ? folder_ : folder_ / fmt::format("trial-{}.ckpt", trial);
}

void TrialTraining::remove_checkpoints(const Study& study) const {
  for (const search::Trial& trial : study.trials()) {
    if (trial.status != search::Trial::Status::paused) remove_checkpoint_file(checkpoint_of(trial.number));
  }
}

double TrialTraining::score_of(const EpochPoint& point) const {
  return monitor_ == SearchMonitor::loss ? point.loss : -point.accuracy.value();
}

bool TrialTraining::run(Study& study, const Job& job, const DevicePtr& device) {
  const auto failed = [&](const std::string& reason) {
    study.fail(job, reason);
    say(fmt::format("trial {} failed: {}", job.trial, reason));
    remove_checkpoint_file(checkpoint_of(job.trial));
    return true;
  };
  // Other errors, such as a full disk or a lost device, are no fault of the trial: they end the search.
  try {
    return train(study, job, device);
  } catch (const NonFinite& error) {
    return failed(error.what());
  } catch (const OutOfMemory& error) {
    return failed(error.what());
  } catch (const KernelBuildError& error) {
    return failed(error.what());
  } catch (const ArgumentError& error) {
    return failed(error.what());
  } catch (const ShapeError& error) {
    return failed(error.what());
  } catch (const NotSupported& error) {
    return failed(error.what());
  } catch (const std::bad_alloc&) {
    return failed("host memory is too small");
  }
}

bool TrialTraining::train(Study& study, const Job& job, const DevicePtr& device) {
  const auto start = TrialClock::now();
  const TrainingRecipe recipe = recipe_of_trial(base_, job.settings);
  const models::Model& model = find_model(recipe.training.model);
  const Data& data = data_for(recipe);
  const SharedSamples samples = [&] {
    const std::lock_guard lock(mutex_);
    return data.by_augment.at(recipe.augment);
  }();
  const DataSource source(recipe.data_options(), model, recipe.training.seed, [&] {
    Trained trained = data.source.trained(*samples);
    trained.network = recipe.training.model;
    return trained;
  }());
  const std::shared_ptr<nn::Module> network = source.make(recipe.variant(source, *samples));
  TrainerOptions how = recipe.trainer_options(model, *samples, *network);
  how.evaluation = recipe.evaluation(source, *samples);
  how.metadata = source.trained(*samples).metadata();
  how.metadata.insert(data.metadata.begin(), data.metadata.end());
  Trainer trainer(network, recipe.objective(source, *samples, model), recipe.training.make_optimizer(), device, how);

  const std::filesystem::path checkpoint = checkpoint_of(job.trial);
  if (!checkpoint.empty() && std::filesystem::exists(checkpoint)) trainer.resume(checkpoint);
  FitOptions fit = recipe.fit_options();  // schedules are those of the whole training
  fit.epochs = job.epochs;
  fit.validate = data.validation;
  fit.stop = stop_requested;
  fit.callbacks.push_back(std::make_shared<TrialRecorder>(study, job, checkpoint));
  const History history = trainer.fit(*samples, fit);
  if (history.end == History::End::stopped) {
    if (!checkpoint.empty() && trainer.steps_done() > 0) trainer.save_checkpoint(checkpoint);
    return false;
  }
  search::Measured measured;
  std::int64_t epoch = history.best_epoch;
  if (epoch == 0) epoch = history.epochs.empty() ? job.epochs : history.epochs.back().epoch;
  if (history.epochs.empty()) trainer.prepare(*samples);  // the checkpoint was written, but its rung was not
  const std::optional<EpochPoint> known = study.point(job.trial, epoch);
  measured.at =
      known ? *known : point_of(epoch, NAN, trainer.evaluate(*data.validation, {.bad_samples = fit.bad_samples}));
  measured.score = score_of(measured.at);
  measured.seconds = seconds_from(start);
  study.reach(job, measured, [&] {
    if (best_file_.empty()) return;
    io::SaveOptions with_score;
    with_score.metadata = {{kMonitor, text_of(monitor_)}, {kScore, fmt::format("{}", measured.score)}};
    trainer.save(best_file_, with_score);
  });
  if (job.is_last) remove_checkpoint_file(checkpoint);
  return true;
}

}  // namespace concord::cli
