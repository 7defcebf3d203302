// Writing checkpoints and resuming from them.
#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/timeline.hpp"
#include "concord/train/state.hpp"

namespace concord::train {
namespace {

/// The settings, by their names in checkpoints, that a training should share with the one that it resumes.
std::map<std::string, std::string> settings_of(const TrainerOptions& options) {
  return {{"clip_norm", fmt::format("{}", options.clip.norm)},
          {"clip_value", fmt::format("{}", options.clip.value)},
          {"ema_decay", fmt::format("{}", options.ema_decay)},
          {"precision", std::string(name_of(options.precision))}};
}

/// What the command calls a setting.
std::string option_of(const std::string& setting) {
  static const std::map<std::string, std::string> kOptions{{"clip_norm", "--clip-norm"},
                                                           {"clip_value", "--clip-value"},
                                                           {"ema_decay", "--ema"},
                                                           {"precision", "--precision"}};
  return kOptions.at(setting);
}

void warn_of_other_settings(const io::CheckpointInfo& info, const TrainerOptions& options, const std::string& file) {
  const auto shown = [](const std::string& value) { return value == "0" ? "none" : value; };
  for (const auto& [name, value] : settings_of(options)) {
    const auto saved = info.extra.find(name);
    if (saved == info.extra.end() || saved->second == value) continue;
    log(LogLevel::warning, fmt::format("{}: the training had {} {}; this one has {}", file, option_of(name),
                                       shown(saved->second), shown(value)));
  }
}

}  // namespace

void save_checkpoint(TrainerState& state, const std::filesystem::path& path, const io::SaveOptions& options) {
  if (state.ranks.rank() != 0 && !state.is_divided()) return;
  const timeline::Span span("checkpoint");
  const Variables& variables = *state.weights.variables();
  const optim::Rule& rule = state.recipe.optimizer.rule();
  io::CheckpointInfo info;
  info.network = state.options.network;
  info.schedule = {{"base_rate", fmt::format("{}", rule.lr)},
                   {"rate", fmt::format("{}", variables.read(optim::kRate).values<float>()[0])},
                   {"kind", state.schedule}};
  info.extra = settings_of(state.options);
  info.extra.emplace("optimizer", rule.name);
  state.at.write_to(info);
  io::TensorMap tensors = gather_persistent(state);
  // A failed step changes nothing, so the training may continue, perhaps with another rate.
  tensors.insert_or_assign(optim::kOk, Tensor::of<float>(Shape{}, std::vector<float>{1}));
  if (state.ranks.are_several()) {  // rank 0 counts its own batches only
    const auto batches = static_cast<std::int32_t>(state.at.batch > 0 ? state.at.position / state.at.batch : 0);
    tensors.insert_or_assign(cursor_name("train"), Tensor::of<std::int32_t>(Shape{1}, std::vector{batches}));
  }
  if (state.best) state.best->write_to(info, tensors, gather_best(state));
  const auto write = [&] { io::save_checkpoint(path, tensors, info, state.options.metadata, options); };
  if (state.is_divided()) {
    write_on_first_rank(state, write);
  } else {
    write();
  }
}

void resume(TrainerState& state, const std::filesystem::path& path) {
  CONCORD_CHECK(state.at.step == 0 && !state.weights.variables()->contains(optim::kStep), ArgumentError,
                "resume must come before the first fit");
  io::Checkpoint checkpoint = io::load_checkpoint(path);
  const io::CheckpointInfo info = checkpoint.info;
  const std::string file = path.string();
  std::optional<BestEpoch> best = BestEpoch::take_from(checkpoint, file);
  CONCORD_CHECK(info.network.empty() || state.options.network.empty() || info.network == state.options.network,
                FormatError, "{}: checkpoint of another network: '{}', not '{}'", file, info.network,
                state.options.network);
  const auto optimizer = info.extra.find("optimizer");
  const std::string& own = state.recipe.optimizer.rule().name;
  CONCORD_CHECK(optimizer != info.extra.end(), FormatError, "{}: the checkpoint has no optimizer", file);
  CONCORD_CHECK(optimizer->second == own, ArgumentError,
                "{}: the checkpoint is from a training with the optimizer '{}', this one has '{}'", file,
                optimizer->second, own);
  Place at = Place::of(checkpoint, file);
  CONCORD_CHECK(at.accumulate == state.at.accumulate, ArgumentError,
                "{}: the checkpoint is from a training with {} batch{} per update (--accumulate), this one has {}",
                file, at.accumulate, at.accumulate == 1 ? "" : "es", state.at.accumulate);
  CONCORD_CHECK(
      !state.ranks.are_several() || at.position == 0 || at.position / at.batch % at.accumulate == 0, ArgumentError,
      "{}: the training stopped between the {} batches of an update; continue it on one device until the next "
      "update",
      file, at.accumulate);
  const auto averaging = info.extra.find("ema_decay");
  const bool has_averages = averaging == info.extra.end() || averaging->second != "0";
  CONCORD_CHECK(has_averages || state.options.ema_decay == 0, ArgumentError,
                "{}: the training had no averages of its weights; it cannot go on with --ema {}", file,
                state.options.ema_decay);
  state.weights.resume(std::move(checkpoint), path);
  state.at = std::move(at);
  state.best = std::move(best);
  state.resumed = {path, info.schedule};
  warn_of_other_settings(info, state.options, file);
}

}  // namespace concord::train
