// Trainer: trains, evaluates and runs a network on one device. Owns the weights there, compiles one program for each
// batch size, and feeds it from data on the device, or streamed when it does not fit.
#pragma once

#include <concepts>
#include <filesystem>
#include <memory>

#include "concord/compile/variables.hpp"
#include "concord/core/export.hpp"
#include "concord/core/held.hpp"
#include "concord/data/dataset.hpp"
#include "concord/device/device.hpp"
#include "concord/io/checkpoint.hpp"
#include "concord/nn/loss.hpp"
#include "concord/nn/module.hpp"
#include "concord/optim/optimizer.hpp"
#include "concord/optim/optimizers.hpp"
#include "concord/train/options.hpp"

namespace concord {
struct TrainerState;
}

namespace CONCORD_PUBLIC concord {

/// Used from one thread at a time: a call while another thread is inside throws ArgumentError, as does one on a trainer
/// that was moved from. Trainers on different devices, of networks built separately, may run at the same time. Every
/// function throws OutOfMemory when the host's memory does not suffice.
class Trainer {
 public:
  template <std::derived_from<nn::Module> Network>
  Trainer(Network network, Loss loss, optim::Optimizer optimizer, DevicePtr device, const TrainerOptions& options = {})
      : Trainer(std::shared_ptr<nn::Module>(std::make_shared<Network>(std::move(network))), std::move(loss),
                std::move(optimizer), std::move(device), options) {}
  Trainer(std::shared_ptr<nn::Module> network, Loss loss, optim::Optimizer optimizer, DevicePtr device,
          const TrainerOptions& options = {});
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  /// Trains for `epochs` more epochs; after `resume` or a stopped fit, for what is left of them. Before any work on the
  /// device: throws ArgumentError for an empty data set, a batch below 1 or labels outside the network's classes,
  /// ShapeError naming the layer that the samples do not fit. A batch above the size of the data set means all of it.
  /// At the first loss or gradient that is not finite throws NonFinite, naming the step, the first node that produced
  /// such a value and the first parameter whose gradient has one; weights, optimizer, averages and running statistics
  /// are then those before that step, to the bit. A rate of the schedule that is negative or not finite is an
  /// ArgumentError before its step. So is a fit within one, in a callback. In a process that `concord compare PROGRAM`
  /// started the training is compared on several devices instead, and the process ends.
  History fit(const Dataset& data, const FitOptions& options = {});
  [[nodiscard]] Metrics evaluate(const Dataset& data, const EvaluateOptions& options = {});
  /// Sets the running statistics of batch norms anew to their mean over the data, through the weights that evaluations
  /// use, as torch.optim.swa_utils.update_bn does: averaged weights (TrainerOptions::ema_decay) were trained with the
  /// statistics of others. For a network that evaluates or is saved; a training that goes on moves them again. Samples
  /// come in a random order, in batches of one size; those left over do not count. Throws as `fit`.
  void refresh_statistics(const Dataset& data, std::int64_t batch = 256);
  /// The network's outputs for all samples, [N, …], in evaluation mode. u8 features count as u8/255.
  [[nodiscard]] Tensor predict(const Tensor& features, std::int64_t batch = 256);
  [[nodiscard]] Tensor predict(const Dataset& data, std::int64_t batch = 256);

  /// Weights, averaged if they are, and running statistics as safetensors, under the names and shapes of the equal
  /// PyTorch module.
  /// Before the first fit or evaluate the network's names are not known: ArgumentError. Throws IoError, and NonFinite
  /// for weights that are not finite, unless the options allow them; the file that was there is then untouched.
  void save(const std::filesystem::path& path, const io::SaveOptions& options = {}) const;
  /// Takes over weights, in place of those that an earlier `load` or `resume` brought; before the network is known they
  /// wait for it. Throws IoError, FormatError for a damaged file or one of another network (then, too, not before the
  /// network is known).
  /// With `strict` false, to give a trained network a new head: what is missing or of another shape keeps its first
  /// values, and a warning says what was not loaded.
  void load(const std::filesystem::path& path, const io::LoadOptions& options = {});

  /// Everything needed to go on as if nothing had happened, written whole or not at all. Throws as `save`.
  void save_checkpoint(const std::filesystem::path& path, const io::SaveOptions& options = {}) const;
  /// Continues from a checkpoint; call before the first fit. On the device that wrote it the result has the same bits
  /// as an uninterrupted run. Throws as `load`; the seed of the checkpoint replaces the options', its weights those of
  /// an earlier `load`. The weights count from now on; the optimizer's state waits for the first fit. Other clipping or
  /// averaging than the checkpoint's is warned of, another schedule at the first fit; another accumulation is refused
  /// with an ArgumentError.
  void resume(const std::filesystem::path& path);

  /// Compiles for samples of this spec without training: names become known, loaded weights take their place.
  void prepare(const TensorSpec& sample);

  [[nodiscard]] std::int64_t epochs_done() const;
  /// Batches trained on: updates, unless gradients are accumulated.
  [[nodiscard]] std::int64_t steps_done() const;
  [[nodiscard]] const VariablesPtr& variables() const;
  [[nodiscard]] Device& device() const;

 private:
  /// The state for a public function: checked, and in use by this thread for as long as `Function` runs.
  template <class Function>
  decltype(auto) with_state(const char* what, Function&& function) const;

  Held<TrainerState> state_;
};

}  // namespace concord
