// Trainer: construction, weights and checkpoints. fit is in fit.cpp, evaluate and predict in evaluate.cpp.
#include "concord/train/trainer.hpp"

#include <numeric>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/train/state.hpp"

namespace concord {

namespace {

void check_pipeline(const TrainerOptions& options) {
  const Pipeline& pipeline = options.pipeline;
  if (!pipeline.is_on()) return;
  CONCORD_CHECK(pipeline.stages >= 2, ArgumentError, "a pipeline needs at least 2 stages, got {}", pipeline.stages);
  CONCORD_CHECK(pipeline.micro >= 2, ArgumentError,
                "a pipeline needs at least 2 batches an update (micro), got {}: with fewer, only one stage works at a "
                "time",
                pipeline.micro);
  const int devices = options.group ? options.group->size() : 1;
  CONCORD_CHECK(devices == pipeline.stages, ArgumentError,
                "a pipeline of {} stages needs {} devices, one for each stage, got {}", pipeline.stages,
                pipeline.stages, devices);
  CONCORD_CHECK(!options.sync_batch_norm, NotSupported,
                "a pipeline trains one batch after another, each on its own statistics of batch norm; leave "
                "sync_batch_norm out");
  CONCORD_CHECK(options.accumulate == 1, ArgumentError,
                "a pipeline joins `micro` batches an update, here {}; leave accumulate at 1, got {}", pipeline.micro,
                options.accumulate);
}

void check_model_parallel(const TrainerOptions& options) {
  const ModelParallel& parallel = options.model_parallel;
  if (!parallel.is_on()) return;
  const int devices = options.group ? options.group->size() : 1;
  CONCORD_CHECK(parallel.ranks >= 2 && devices == parallel.ranks, ArgumentError,
                "a network in {} parts needs as many devices, and at least 2, got {}", parallel.ranks, devices);
  CONCORD_CHECK(!options.pipeline.is_on(), NotSupported, "a network is either divided within layers or in stages");
  CONCORD_CHECK(
      !options.sync_batch_norm, NotSupported,
      "a network that is divided within layers has the statistics of the whole batch without sync_batch_norm");
  CONCORD_CHECK(options.gradients == Precision::fp32, NotSupported,
                "the devices of a divided network sum gradients in fp32, not in {}", name_of(options.gradients));
}

}  // namespace

Trainer::Trainer(std::shared_ptr<nn::Module> network, Objective objective, optim::Optimizer optimizer, DevicePtr device,
                 const TrainerOptions& options)
    : state_("a Trainer") {
  CONCORD_CHECK(network && objective && device, ArgumentError, "a trainer needs a network, a loss and a device");
  CONCORD_CHECK(options.accumulate >= 1, ArgumentError, "a trainer needs at least 1 batch per update, got {}",
                options.accumulate);
  state_ = with_host_memory("making a Trainer", [&] {
    TrainerOptions own = options;
    if (!own.group) own.group = collective::group_of_process();
    CONCORD_CHECK(own.gradients != Precision::tf32, NotSupported,
                  "ranks exchange gradients in fp32, bf16 or fp16, not in tf32");
    check_pipeline(own);
    check_model_parallel(own);
    const bool in_stages = own.pipeline.is_on(), in_parts = own.model_parallel.is_on();
    const int rank = own.group ? own.group->rank() : 0;
    const optim::MinimizeOptions minimize{.clip = own.clip,
                                          .check_gradients = own.check_gradients,
                                          .groups = own.groups,
                                          .accumulate = in_stages ? own.pipeline.micro : own.accumulate,
                                          .ranks = own.group && !in_stages && !in_parts ? own.group->size() : 1,
                                          .model_ranks = in_parts ? own.model_parallel.ranks : 1,
                                          .model_rank = in_parts ? rank : 0,
                                          .ema_decay = own.ema_decay,
                                          .loss_scale = optim::loss_scale_for(own.precision)};
    return std::make_unique<TrainerState>(
        train::Recipe{std::move(network), std::move(objective), std::move(optimizer), minimize, own.sync_batch_norm,
                      rank, own.model_parallel, own.evaluation},
        std::move(device), own);
  });
}

Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

void Trainer::prepare(const TensorSpec& sample) {
  Dataset data;
  data.features = Tensor(sample.dtype, train::with_batch(sample.shape, 1));
  prepare(static_cast<const Samples&>(data));
}

void Trainer::prepare(const Samples& data) {
  with_state("preparing a network", [&](TrainerState& state) {
    train::Source source = train::streamed_source(data);
    source.labels.clear();
    static_cast<void>(state.programs.get({train::Purpose::predict, source, {1, 0}, 0, state.weights.are_averaged()}));
  });
}

void Trainer::save(const std::filesystem::path& path, const io::SaveOptions& options) const {
  with_state("saving weights", [&](TrainerState& state) {
    CONCORD_CHECK(state.weights.are_known(), ArgumentError,
                  "there are no weights to save yet: call fit, evaluate, predict or prepare first");
    const io::TensorMap weights = train::gather_evaluated(state);
    train::write_on_first_rank(state, [&] { io::save_weights(path, weights, state.options.metadata, options); });
  });
}

void Trainer::load(const std::filesystem::path& path, const io::LoadOptions& options) {
  with_state("loading weights", [&](TrainerState& state) { state.weights.load(path, options); });
}

void Trainer::save_checkpoint(const std::filesystem::path& path, const io::SaveOptions& options) const {
  with_state("saving a checkpoint", [&](TrainerState& state) {
    CONCORD_CHECK(state.weights.variables()->contains(optim::kStep), ArgumentError,
                  "there is nothing to save in a checkpoint before the first step");
    const auto save = [&] { train::save_checkpoint(state, path, options); };
    if (state.is_divided()) {
      save();
    } else {
      train::write_on_first_rank(state, save);
    }
  });
}

void Trainer::resume(const std::filesystem::path& path) {
  with_state("loading a checkpoint", [&](TrainerState& state) { train::resume(state, path); });
}

std::int64_t Trainer::epochs_done() const { return state_->at.epoch; }
std::int64_t Trainer::steps_done() const { return state_->at.step; }
int Trainer::ranks() const { return state_->ranks.size(); }
std::vector<double> Trainer::shares() const {
  std::vector<double> shares = state_->ranks.shares();
  const double whole = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= whole;
  return shares;
}
const VariablesPtr& Trainer::variables() const { return state_->weights.variables(); }
Device& Trainer::device() const { return *state_->device; }

}  // namespace concord
