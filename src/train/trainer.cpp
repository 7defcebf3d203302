// Trainer: construction, weights and checkpoints. fit stands in fit.cpp, evaluate and predict in evaluate.cpp.
#include "concord/train/trainer.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/train/state.hpp"

namespace concord {
namespace {

std::int64_t extra_number(const io::CheckpointInfo& info, const std::string& name, const std::string& file) {
  const auto found = info.extra.find(name);
  CONCORD_CHECK(found != info.extra.end(), FormatError, "{}: the checkpoint has no '{}'", file, name);
  const std::string& text = found->second;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  CONCORD_CHECK(error == std::errc{} && end == text.data() + text.size() && number >= 0, FormatError,
                "{}: the checkpoint's '{}' is '{}', not a number", file, name, text);
  return number;
}

/// Batches an update; checkpoints that do not say were written without accumulation.
std::int64_t accumulation_of(const io::CheckpointInfo& info, const std::string& file) {
  if (!info.extra.contains("accumulate")) return 1;
  const std::int64_t accumulate = extra_number(info, "accumulate", file);
  CONCORD_CHECK(accumulate >= 1, FormatError, "{}: the checkpoint's 'accumulate' is 0", file);
  return accumulate;
}

/// The validation losses; numbers with spaces between.
std::vector<double> losses_of(const io::CheckpointInfo& info, const std::string& file) {
  std::vector<double> losses;
  const auto found = info.extra.find("losses");
  if (found == info.extra.end()) return losses;
  const char *at = found->second.data(), *const end = at + found->second.size();
  while (at != end) {
    double loss = 0;
    const auto [next, error] = std::from_chars(at, end, loss);
    CONCORD_CHECK(error == std::errc{} && (next == end || *next == ' '), FormatError,
                  "{}: the checkpoint's 'losses' are '{}', not numbers", file, found->second);
    losses.push_back(loss);
    at = next == end ? end : next + 1;
  }
  return losses;
}

/// The only element of an i32 tensor of a checkpoint. Throws FormatError when there is no such tensor.
std::int64_t counter_of(const io::Checkpoint& checkpoint, const std::string& name, const std::string& file) {
  const auto found = checkpoint.tensors.find(name);
  CONCORD_CHECK(
      found != checkpoint.tensors.end() && found->second.dtype() == DType::i32 && found->second.elements() == 1,
      FormatError, "{}: the checkpoint has no i32 number '{}'", file, name);
  return found->second.values<std::int32_t>()[0];
}

/// Where the training of a checkpoint stood. Throws FormatError when its numbers contradict each other: they say which
/// batches the device reads next.
TrainerState::Place place_of(const io::Checkpoint& checkpoint, const std::string& file) {
  constexpr std::int64_t kMostEpochs = std::numeric_limits<std::uint32_t>::max();
  const io::CheckpointInfo& info = checkpoint.info;
  TrainerState::Place at;
  at.epoch = info.epoch;
  at.step = info.step;
  at.position = info.position;
  at.first_epoch = extra_number(info, "first_epoch", file);
  at.batch = extra_number(info, "batch", file);
  at.samples = extra_number(info, "samples", file);
  CONCORD_CHECK(at.epoch <= kMostEpochs && at.first_epoch <= at.epoch && info.permutation_epoch == at.epoch,
                FormatError, "{}: the checkpoint has {} epochs done, the first of them {}, the order of samples of {}",
                file, at.epoch, at.first_epoch, info.permutation_epoch);
  const std::int64_t steps = counter_of(checkpoint, optim::kStep, file);
  const std::int64_t accumulate = accumulation_of(info, file);
  at.updates = info.extra.contains("updates") ? extra_number(info, "updates", file) : at.step / accumulate;
  CONCORD_CHECK(at.updates <= at.step && at.updates >= at.step / accumulate, FormatError,
                "{}: the checkpoint has {} steps done, {} an update, but {} updates", file, at.step, accumulate,
                at.updates);
  // With a scaled loss a step whose gradients overflow updates nothing, as does one whose labels are all ignored.
  const auto precision = info.extra.find("precision");  // early checkpoints do not say
  const bool is_scaled = precision == info.extra.end() ? checkpoint.tensors.contains(optim::kScale)
                                                       : precision->second == name_of(Precision::fp16);
  const bool may_skip = is_scaled || checkpoint.tensors.contains(train::loss_weight_name("train", 0));
  const std::int64_t most_steps = std::min<std::int64_t>(at.updates, optim::kMostSteps);
  CONCORD_CHECK(steps == most_steps || (may_skip && steps < most_steps), FormatError,
                "{}: the checkpoint has {} steps done, {} an update, but its '{}' is {}", file, at.step, accumulate,
                optim::kStep, steps);
  if (at.position == 0) return at;
  CONCORD_CHECK(at.batch >= 1 && at.position < at.samples && at.position % at.batch == 0, FormatError,
                "{}: the checkpoint stands at sample {} of {}, in batches of {}", file, at.position, at.samples,
                at.batch);
  const std::string cursor = train::cursor_name("train");
  const std::int64_t batches = counter_of(checkpoint, cursor, file);
  CONCORD_CHECK(batches == at.position / at.batch, FormatError,
                "{}: the checkpoint stands after {} batches of its epoch, but its '{}' is {}", file,
                at.position / at.batch, cursor, batches);
  return at;
}

void resume_from(TrainerState& state, const std::filesystem::path& path) {
  CONCORD_CHECK(state.at.step == 0 && !state.variables->contains(optim::kStep), ArgumentError,
                "resume must come before the first fit");
  io::Checkpoint checkpoint = io::load_checkpoint(path);
  const io::CheckpointInfo& info = checkpoint.info;
  CONCORD_CHECK(info.network.empty() || state.options.network.empty() || info.network == state.options.network,
                FormatError, "{}: checkpoint of another network: '{}', not '{}'", path.string(), info.network,
                state.options.network);
  const auto optimizer = info.extra.find("optimizer");
  const std::string& own = state.recipe.optimizer.rule().name;
  CONCORD_CHECK(optimizer != info.extra.end(), FormatError, "{}: the checkpoint names no optimizer", path.string());
  CONCORD_CHECK(optimizer->second == own, ArgumentError,
                "{}: the checkpoint is of a training with the optimizer '{}', this one has '{}'", path.string(),
                optimizer->second, own);
  const TrainerState::Place at = place_of(checkpoint, path.string());
  const std::int64_t accumulate = accumulation_of(info, path.string());
  CONCORD_CHECK(accumulate == state.options.accumulate, ArgumentError,
                "{}: the checkpoint is of a training with {} batches an update, this one has {}", path.string(),
                accumulate, state.options.accumulate);
  std::vector<double> losses = losses_of(info, path.string());
  TrainerState::check_checkpoint(checkpoint, path, state.known, false);
  for (const auto& [name, value] : state.settings()) {
    const auto saved = info.extra.find(name);
    if (saved == info.extra.end() || saved->second == value) continue;
    log(LogLevel::warning,
        fmt::format("{}: the training had {} {}; this one has {}", path.string(), name, saved->second, value));
  }
  state.at = at;
  state.losses = std::move(losses);
  state.options.seed = info.seed;
  state.resumed_schedule = info.schedule;
  state.checkpoint_path = path;
  state.pending_weights.reset();
  state.pending_checkpoint = std::move(checkpoint);
  state.take_from_checkpoint(state.known);
}

}  // namespace

Trainer::Trainer(std::shared_ptr<nn::Module> network, Loss loss, optim::Optimizer optimizer, DevicePtr device,
                 const TrainerOptions& options)
    : state_("a Trainer") {
  CONCORD_CHECK(network && loss && device, ArgumentError, "a trainer needs a network, a loss and a device");
  CONCORD_CHECK(options.accumulate >= 1, ArgumentError, "a trainer accumulates 1 batch an update or more, got {}",
                options.accumulate);
  state_ = with_host_memory("making a Trainer", [&] {
    return std::make_unique<TrainerState>(
        TrainerState{{std::move(network),
                      std::move(loss),
                      std::move(optimizer),
                      {options.clip, options.check_gradients, options.groups, options.accumulate, options.ema_decay,
                       optim::loss_scale_for(options.precision)}},
                     device,
                     options,
                     std::make_shared<Variables>(device, options.seed)});
  });
}

Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

void Trainer::prepare(const TensorSpec& sample) {
  const train::Source source{{}, sample, {DType::f32, Shape{}}, 1.0F / 255, 0};
  with_state("preparing a network", [&](TrainerState& state) {
    static_cast<void>(state.program({train::Purpose::predict, source, {1, 0}, 0, state.averaged()}, 0));
  });
}

void Trainer::save(const std::filesystem::path& path, const io::SaveOptions& options) const {
  with_state("saving weights", [&](TrainerState& state) {
    CONCORD_CHECK(!state.weights.empty(), ArgumentError,
                  "there are no weights to save yet: call fit, evaluate, predict or prepare first");
    io::save_weights(path, state.evaluated_weights(), state.options.metadata, options);
  });
}

void Trainer::load(const std::filesystem::path& path, const io::LoadOptions& options) {
  with_state("loading weights", [&](TrainerState& state) {
    const TrainerState::WeightsFile file{path, options};
    if (state.weights.empty()) {
      static_cast<void>(io::SafetensorsFile(path));  // the header is checked now
      state.pending_weights = file;
    } else {
      state.write_weights(file.load(state.weights));
    }
  });
}

io::TensorMap TrainerState::WeightsFile::load(const std::map<std::string, TensorSpec>& network) const {
  io::LoadedWeights loaded = io::load_weights(path, network, options);
  if (!loaded.report.is_empty()) {
    log(LogLevel::warning, fmt::format("{}: {} of {} tensors of the network were loaded: {}", path.string(),
                                       loaded.tensors.size(), network.size(), loaded.report.str()));
  }
  return std::move(loaded.tensors);
}

void TrainerState::save_checkpoint(const std::filesystem::path& path, const io::SaveOptions& how) const {
  const timeline::Span span("checkpoint");
  io::CheckpointInfo info;
  info.network = options.network;
  info.epoch = at.epoch;
  info.step = at.step;
  info.position = at.position;
  info.permutation_epoch = static_cast<std::uint32_t>(at.epoch);
  info.seed = options.seed;
  const optim::Rule& rule = recipe.optimizer.rule();
  info.schedule = {{"base_rate", fmt::format("{}", rule.lr)},
                   {"rate", fmt::format("{}", variables->read(optim::kRate).values<float>()[0])},
                   {"kind", schedule}};
  info.extra = {{"optimizer", rule.name},
                {"first_epoch", std::to_string(at.first_epoch)},
                {"batch", std::to_string(at.batch)},
                {"samples", std::to_string(at.samples)},
                {"accumulate", std::to_string(options.accumulate)},
                {"losses", fmt::format("{}", fmt::join(losses, " "))}};
  if (options.accumulate > 1) info.extra["updates"] = std::to_string(at.updates);
  info.extra.merge(settings());
  io::TensorMap tensors = persistent();
  // After a step that failed everything is as before it: the training may go on from there, with another rate perhaps.
  tensors.insert_or_assign(optim::kOk, Tensor::of<float>(Shape{}, std::vector<float>{1}));
  io::save_checkpoint(path, tensors, info, options.metadata, how);
}

void Trainer::save_checkpoint(const std::filesystem::path& path, const io::SaveOptions& options) const {
  with_state("saving a checkpoint", [&](TrainerState& state) {
    CONCORD_CHECK(state.variables->contains(optim::kStep), ArgumentError,
                  "there is nothing to put into a checkpoint before the first step");
    state.save_checkpoint(path, options);
  });
}

void Trainer::resume(const std::filesystem::path& path) {
  with_state("loading a checkpoint", [&](TrainerState& state) { resume_from(state, path); });
}

/// Another rate after a resume may be meant, but is told: with it the training is not the one that was stopped.
void TrainerState::compare_rates(const optim::Schedule& own_schedule) {
  const auto saved = std::exchange(resumed_schedule, {});
  if (!saved.contains("rate") || at.step == 0) return;
  const std::string& kind = own_schedule.description();
  if (saved.contains("kind") && saved.at("kind") != kind) {
    log(LogLevel::warning, fmt::format("{}: the training had the schedule {}; this one has {}",
                                       checkpoint_path.string(), saved.at("kind"), kind));
  }
  const std::int64_t epoch = at.epoch - (at.position > 0 ? 0 : 1);
  const double base = recipe.optimizer.rule().lr;
  std::span<const double> earlier = losses;  // at that step
  if (at.position == 0 && !earlier.empty()) earlier = earlier.first(earlier.size() - 1);
  const std::int64_t batch = at.position > 0 ? at.position / at.batch : 0;  // an epoch's last makes an update
  const std::int64_t step = at.updates - (batch % options.accumulate == 0 ? 1 : 0);
  const std::string own = fmt::format("{}", static_cast<float>(own_schedule(base, {step, epoch, earlier})));
  if (own == saved.at("rate")) return;
  log(LogLevel::warning, fmt::format("{}: step {} had the learning rate {}; this optimizer and schedule give {}",
                                     checkpoint_path.string(), at.step, saved.at("rate"), own));
}

std::int64_t Trainer::epochs_done() const { return state_->at.epoch; }
std::int64_t Trainer::steps_done() const { return state_->at.step; }
const VariablesPtr& Trainer::variables() const { return state_->variables; }
Device& Trainer::device() const { return *state_->device; }

}  // namespace concord
