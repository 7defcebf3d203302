// Trainer: construction, weights and checkpoints. fit stands in fit.cpp, evaluate and predict in evaluate.cpp.
#include "concord/train/trainer.hpp"

#include "concord/core/check.hpp"
#include "concord/train/state.hpp"

namespace concord {
namespace {

std::int64_t extra_number(const io::CheckpointInfo& info, const std::string& name) {
  const auto found = info.extra.find(name);
  return found == info.extra.end() ? 0 : std::strtoll(found->second.c_str(), nullptr, 10);
}

}  // namespace

Trainer::Trainer(std::shared_ptr<nn::Module> network, Loss loss, optim::Optimizer optimizer, DevicePtr device,
                 const TrainerOptions& options) {
  CONCORD_CHECK(network && loss && device, ArgumentError, "a trainer needs a network, a loss and a device");
  state_ = std::make_unique<TrainerState>(
      TrainerState{{std::move(network), std::move(loss), std::move(optimizer), {options.clip, options.check_gradients}},
                   device,
                   options,
                   std::make_shared<Variables>(device, options.seed)});
}

Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

void Trainer::prepare(const TensorSpec& sample) {
  const train::Source source{{}, sample, {DType::f32, Shape{}}, 1.0F / 255, 0};
  static_cast<void>(state_->program({train::Purpose::predict, source, {1, 0}, 0, 0}, 0));
}

void Trainer::save(const std::filesystem::path& path) const {
  CONCORD_CHECK(!state_->weights.empty(), ArgumentError,
                "there are no weights to save yet: call fit, evaluate, predict or prepare first");
  io::save_weights(path, state_->read_weights());
}

void Trainer::load(const std::filesystem::path& path) {
  if (state_->weights.empty()) {
    static_cast<void>(io::read_safetensors(path, [](std::string_view) { return false; }));  // the header is checked now
    state_->pending_weights = path;
    return;
  }
  for (const auto& [name, tensor] : io::load_weights(path, state_->weights)) state_->variables->write(name, tensor);
}

void TrainerState::save_checkpoint(const std::filesystem::path& path) const {
  io::CheckpointInfo info;
  info.network = options.network;
  info.epoch = at.epoch;
  info.step = at.step;
  info.position = at.position;
  info.permutation_epoch = static_cast<std::uint32_t>(at.epoch);
  info.seed = options.seed;
  info.extra = {{"first_epoch", std::to_string(at.first_epoch)},
                {"batch", std::to_string(at.batch)},
                {"samples", std::to_string(at.samples)}};
  io::save_checkpoint(path, persistent(), info);
}

void Trainer::save_checkpoint(const std::filesystem::path& path) const {
  CONCORD_CHECK(state_->variables->contains(optim::kStep), ArgumentError,
                "there is nothing to put into a checkpoint before the first step");
  state_->save_checkpoint(path);
}

void Trainer::resume(const std::filesystem::path& path) {
  TrainerState& state = *state_;
  CONCORD_CHECK(state.at.step == 0 && !state.variables->contains(optim::kStep), ArgumentError,
                "resume must come before the first fit");
  io::Checkpoint checkpoint = io::load_checkpoint(path);
  const io::CheckpointInfo& info = checkpoint.info;
  CONCORD_CHECK(info.network.empty() || state.options.network.empty() || info.network == state.options.network,
                FormatError, "{}: checkpoint of another network: '{}', not '{}'", path.string(), info.network,
                state.options.network);
  TrainerState::check_checkpoint(checkpoint, path, state.known, false);
  state.options.seed = info.seed;
  state.at.epoch = info.epoch;
  state.at.step = info.step;
  state.at.position = info.position;
  state.at.first_epoch = extra_number(info, "first_epoch");
  state.at.batch = extra_number(info, "batch");
  state.at.samples = extra_number(info, "samples");
  state.checkpoint_path = path;
  state.pending_weights.reset();
  state.pending_checkpoint = std::move(checkpoint);
  state.take_from_checkpoint(state.known);
}

std::int64_t Trainer::epochs_done() const { return state_->at.epoch; }
std::int64_t Trainer::steps_done() const { return state_->at.step; }
const VariablesPtr& Trainer::variables() const { return state_->variables; }
Device& Trainer::device() const { return *state_->device; }

}  // namespace concord
