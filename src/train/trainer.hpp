// Trainer: trains, evaluates and runs a network on one device. It owns the weights on the device, compiles a program
// for each batch size, and keeps the data on the device or streams it.
#pragma once

#include <concepts>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "concord/compile/variables.hpp"
#include "concord/core/error.hpp"
#include "concord/core/export.hpp"
#include "concord/core/held.hpp"
#include "concord/data/dataset.hpp"
#include "concord/device/device.hpp"
#include "concord/io/checkpoint.hpp"
#include "concord/nn/module.hpp"
#include "concord/optim/optimizer.hpp"
#include "concord/optim/optimizers.hpp"
#include "concord/train/objective.hpp"
#include "concord/train/options.hpp"

namespace concord {
struct TrainerState;
}

namespace CONCORD_PUBLIC concord {

/// `concord compare PROGRAM` has compared a training instead of running it. The weights are not trained: let the
/// program end.
class FitReplaced : public Error {
 public:
  using Error::Error;
};

/// Trains a network by an Objective: one loss, or the losses of several outputs. The data is a Dataset or any other
/// Samples. Its columns of features are the inputs of the network, by name or by position (nn::Module::input_names);
/// its columns of labels are the targets.
///
/// Only one thread at a time may use a Trainer: a call during a call of another thread throws ArgumentError, and so
/// does using a trainer that was moved from. Trainers on different devices with separately built networks may run at
/// the same time. Every function throws OutOfMemory if host memory runs out.
class Trainer {
 public:
  template <std::derived_from<nn::Module> Network>
  Trainer(Network network, Objective objective, optim::Optimizer optimizer, DevicePtr device,
          const TrainerOptions& options = {})
      : Trainer(std::shared_ptr<nn::Module>(std::make_shared<Network>(std::move(network))), std::move(objective),
                std::move(optimizer), std::move(device), options) {}
  Trainer(std::shared_ptr<nn::Module> network, Objective objective, optim::Optimizer optimizer, DevicePtr device,
          const TrainerOptions& options = {});
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  /// Trains for `epochs` more epochs; after `resume` or a stopped fit, for the remaining ones. A batch larger than the
  /// data set means the whole data set.
  /// - Before any work on the device it throws ArgumentError for an empty data set, a batch below 1, or labels outside
  ///   the network's classes, and ShapeError with the first layer that does not match the samples.
  /// - At the first loss or gradient that is NaN or infinite, it throws NonFinite with the step, the first node with
  ///   such a value and the first parameter with such a gradient. Weights, optimizer state, averages and running
  ///   statistics then keep their values from before that step, bit for bit.
  /// - It throws ArgumentError before a step whose learning rate is negative or not finite, and for a fit within a fit
  ///   (in a callback).
  /// - In a process started by `concord compare PROGRAM`, it compares the training on several devices instead. Then the
  ///   command ends the process; if it does not, `fit` throws FitReplaced.
  History fit(const Samples& data, const FitOptions& options = {});
  /// Returns loss, accuracy and metrics of the network on all samples, in evaluation mode, with averaged weights if
  /// there are any. EvaluateOptions::k above the number of classes counts as that number. Throws ArgumentError for k
  /// below 1 and for labels outside the classes, ShapeError if the samples do not fit the network.
  [[nodiscard]] Metrics evaluate(const Samples& data, const EvaluateOptions& options = {});
  /// Replaces the running statistics of batch norm by their mean over the data, computed with the weights that
  /// evaluations use, as torch.optim.swa_utils.update_bn does. With averaged weights (TrainerOptions::ema_decay) it
  /// replaces the averages of the statistics, which were collected with other weights. Call it before evaluating or
  /// saving; further training changes the statistics again. Samples come in random order in batches of one size; the
  /// remaining samples are skipped. Throws as `fit`.
  void refresh_statistics(const Samples& data, std::int64_t batch = 256);
  /// Returns the outputs of the network for all samples, [N, …], in evaluation mode. u8 features are divided by 255,
  /// whatever scale the training set had.
  [[nodiscard]] Tensor predict(const Tensor& features, std::int64_t batch = 256);
  /// Reads u8 features as their ColumnSpec says. `data` needs no labels. Throws ArgumentError if the network has
  /// several outputs.
  [[nodiscard]] Tensor predict(const Samples& data, std::int64_t batch = 256);
  /// As `predict`, for a network with several outputs: by name, or "0", "1", … for outputs without a name. `data` needs
  /// no labels.
  [[nodiscard]] std::map<std::string, Tensor> predict_values(const Samples& data, std::int64_t batch = 256);

  /// Saves weights (their averages, if there are any) and running statistics as safetensors, with the names and shapes
  /// of the same PyTorch module. Throws ArgumentError before the first fit or evaluate, when the names are not known
  /// yet. Throws IoError, and NonFinite for NaN or infinite weights unless the options allow them; an existing file
  /// then stays unchanged.
  void save(const std::filesystem::path& path, const io::SaveOptions& options = {}) const;
  /// Loads weights; they replace those of an earlier `load` or `resume`. Before the first fit, evaluate or `prepare`
  /// the network is not known: the weights are stored and checked later. Throws IoError, and FormatError for a damaged
  /// file or for that of another network, possibly only when the network becomes known. With `strict` false, tensors
  /// that are missing or have another shape keep their initial values, and a warning lists them; for example to give a
  /// trained network a new head.
  void load(const std::filesystem::path& path, const io::LoadOptions& options = {});

  /// Saves everything that is needed to continue the training, completely or not at all. Throws as `save`.
  void save_checkpoint(const std::filesystem::path& path, const io::SaveOptions& options = {}) const;
  /// Continues from a checkpoint; call it before the first fit. On the device that wrote it, the result has the same
  /// bits as an uninterrupted training. Throws as `load`. The checkpoint replaces the seed of the options and the
  /// weights of an earlier `load`. The weights apply at once, the optimizer's state at the first fit. Logs a warning if
  /// clipping, averaging or (at the first fit) the schedule differs; throws ArgumentError if the accumulation differs.
  void resume(const std::filesystem::path& path);

  /// Compiles for samples of this spec without training. Names become known, and loaded weights are applied.
  void prepare(const TensorSpec& sample);
  /// As above, for the columns of features in `data`.
  void prepare(const Samples& data);

  [[nodiscard]] std::int64_t epochs_done() const;
  /// Number of batches trained on. It equals the number of updates unless gradients are accumulated.
  [[nodiscard]] std::int64_t steps_done() const;
  /// The number of devices that train together (TrainerOptions::group); 1 for a trainer on its own.
  [[nodiscard]] int ranks() const;
  /// The part of each batch that each rank trains on, in the order of the ranks; together 1. Empty without
  /// TrainerOptions::split. A split by speed is known from the beginning of the first `fit`.
  [[nodiscard]] std::vector<double> shares() const;
  [[nodiscard]] const VariablesPtr& variables() const;
  [[nodiscard]] Device& device() const;

 private:
  /// The state for a public function: checks it and marks it as used by this thread while `Function` runs.
  template <class Function>
  decltype(auto) with_state(const char* what, Function&& function) const;

  Held<TrainerState> state_;
};

}  // namespace concord
