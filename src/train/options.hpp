// Options of a Trainer and of its `fit`, `evaluate` and `predict`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "concord/collective/group.hpp"
#include "concord/core/export.hpp"
#include "concord/data/dataset.hpp"
#include "concord/data/loader.hpp"
#include "concord/nn/model_parallel.hpp"
#include "concord/optim/minimize.hpp"
#include "concord/optim/schedule.hpp"
#include "concord/train/metric.hpp"
#include "concord/train/objective.hpp"
#include "concord/train/report.hpp"

namespace CONCORD_PUBLIC concord {

/// A network cut into stages, each on a device of its own, for networks that one device does not hold. The rank is the
/// number of the stage. An update trains `micro` batches of FitOptions::batch, which go through the stages one after
/// another: while a stage works on one, the others work on those before and behind it (Narayanan et al., "PipeDream",
/// 2019: one forward pass, one backward pass). The result is that of `accumulate` = micro on one device.
struct Pipeline {
  int stages = 0;  // the number of devices; 0: no pipeline
  int micro = 0;   // batches an update, at least 2
  [[nodiscard]] bool is_on() const { return stages != 0 || micro != 0; }
};

/// A network whose layers are divided among devices, for networks that one device does not hold. Each rank has its part
/// of the weights and of the optimizer's state, and all ranks train on the same batches. The result is that of one
/// device with the same options, up to rounding, but for the random numbers of dropout within divided layers. See
/// nn::DividedLayers for what is divided.
struct ModelParallel {
  nn::Division division = nn::Division::none;
  int ranks = 0;  // the number of devices
  [[nodiscard]] bool is_on() const { return division != nn::Division::none; }
};

/// How the samples of an update are divided among devices of different speed. Without it each has a batch of its own,
/// FitOptions::batch, and the slowest determines the time. With it N devices split a batch of N times as many samples.
/// The result is that of one device with that batch, up to rounding, but for what depends on the parts: the statistics
/// of batch norm, unless it is synchronised, the random numbers of dropout, and the pairs of FitOptions::mixing. A
/// checkpoint continues with another split of as many samples, or on one device.
struct BatchSplit {
  std::vector<double> shares = {};  // in which proportions; one above 0 for each rank. Empty: equal batches
  /// In the proportions of speeds that the first `fit` measures. Not with `shares`.
  bool by_speed = false;
  [[nodiscard]] bool is_on() const { return by_speed || !shares.empty(); }
};

/// Training on several devices: each rank is a process with one device. A process that `concord launch`, torchrun,
/// mpirun or srun has started joins the others by itself; nothing in the program changes.
/// - The batch is that of one rank, unless `split` says otherwise. N ranks have the results of `accumulate` N on one
///   device, bit for bit if `accumulate` is 1 and the devices are equal. Running statistics of batch norm are those of
///   each rank's batches, unless `sync_batch_norm` is set; files get those of rank 0.
/// - All ranks make the same calls. Files are written by rank 0; `save` and `save_checkpoint` wait for it.
/// - Epochs and validations report the same numbers on all ranks. A checkpoint continues on any number of devices with
///   the same number of batches per update.
struct TrainerOptions {
  std::uint64_t seed = 0;    // for initial weights, the order of samples and dropout
  std::string network = {};  // a name stored in checkpoints; `resume` rejects a checkpoint with another name
  optim::Clip clip = {};
  /// Parameters with their own learning rate, weight decay or optimizer, or frozen ones. The first matching group
  /// applies.
  std::vector<optim::Group> groups = {};
  /// Number of batches per update. The gradients of these batches are joined as if they were one batch (concord::Loss);
  /// only batch norm uses the statistics of each batch. The batches left at the end of an epoch make an update of their
  /// own. Clipping applies to the joined gradient; schedules count updates. A batch whose labels are all ignored does
  /// not count; an update with only such batches is skipped.
  int accumulate = 1;
  /// Above 0: `evaluate`, `predict` and `save` use exponential moving averages of the weights and of the running
  /// statistics; each update keeps this part of the old average (for example 0.999).
  double ema_decay = 0;
  /// The precision of matrix multiplications in training and evaluation. fp16 scales the loss
  /// (optim::MinimizeOptions::loss_scale).
  Precision precision = Precision::fp32;
  /// The memory limit of a training step in bytes, as CompileOptions::memory_budget; 0: none. Data sets on the device,
  /// weights and the optimizer's state are not included.
  std::size_t memory_budget = 0;
  /// Stops the training before an update if a gradient is NaN or infinite, even if the loss is finite. Without it, such
  /// gradients are applied.
  bool check_gradients = true;
  /// Data sets stay on the device while all of them together use at most this part of its memory.
  double resident_fraction = 0.4;
  /// Extra metadata for the files of `save` and `save_checkpoint`, such as the alphabet of a language model. UTF-8.
  std::map<std::string, std::string> metadata = {};
  /// The ranks to train with. Null: those that this process was started with (collective::group_of_process), if any.
  collective::GroupPtr group = nullptr;
  /// Batch norm takes its statistics over the batches of all ranks that are trained on at the same time, as
  /// torch.nn.SyncBatchNorm. With one rank it changes nothing. Not with a pipeline.
  bool sync_batch_norm = false;
  /// Not with a pipeline. With one rank it changes nothing.
  BatchSplit split = {};
  /// fp32; or bf16 or fp16: gradients that travel between ranks through the host are rounded, before the sum and after
  /// it. They take half the bytes between machines. In fp16 they are multiplied by a power of two meanwhile, so that
  /// none overflows (Group::all_reduce_rounded). GPUs that read each other's memory exchange gradients in fp32.
  Precision gradients = Precision::fp32;
  /// Not with `accumulate`. Needs as many ranks as stages.
  Pipeline pipeline = {};
  /// Not with `pipeline` and `split`, and not for optimizers that need whole parameters: Lars, Lamb, Adafactor, Muon.
  ModelParallel model_parallel = {};
  /// When ranks are lost, `fit` goes on from the last update with those that are left, if they are at least so many.
  /// An update keeps its number of batches, so the training has the same results up to rounding, and more time. 0:
  /// collective::least_ranks; if that is 0 too, fit throws RankLost. The launcher of the ranks must let the others
  /// live: `concord launch` does so with --min-ranks, or where CONCORD_MIN_RANKS is set for it.
  int min_ranks = 0;
  /// What evaluations and validations report as loss. Empty: the objective of the training. For example the plain
  /// cross-entropy of a network that is trained with smoothed labels or weights of classes, so that trainings compare.
  Objective evaluation = {};
};

/// Ends a training when its validation stops improving. Needs FitOptions::validate. A checkpoint keeps the best epoch
/// and its weights, so that a training that goes on ends as one without a stop.
struct EarlyStopping {
  enum class Monitor : std::uint8_t { loss, accuracy };
  Monitor monitor = Monitor::loss;
  std::string metric = {};        // name of one of FitOptions::metrics, used instead of `monitor`
  bool larger_is_better = false;  // applies to `metric`
  std::int64_t patience = 5;      // epochs without improvement before the training ends
  double min_delta = 0;           // a smaller change does not count as an improvement
  /// Restores the weights of the best epoch at the end. A stopped training keeps its last weights, because it may
  /// continue.
  bool restore_best = true;
};

/// What happens to the samples that do not fill the last batch of an epoch.
enum class LastBatch : std::uint8_t {
  keep,   // a smaller batch of their own
  drop,   // skipped in this epoch; shuffling selects others in the next epoch
  merge,  // added to the batch before
  pad     // filled with the first samples of the epoch, which count twice in it
};

/// Mixes each sample of a training batch with another one, on the device. The loss is that of both labels, each in the
/// share of its sample. `mixup` blends all numbers of the first column of features (Zhang et al., "mixup", 2018),
/// `cutmix` replaces a rectangle of an image (Yun et al., "CutMix", 2019). Above 0 it is the parameter of the Beta
/// distribution of the shares, drawn once for each batch; with both, each batch takes one of them by chance.
struct Mixing {
  double mixup = 0, cutmix = 0;
  [[nodiscard]] bool is_on() const { return mixup != 0 || cutmix != 0; }
};

struct FitOptions {
  std::int64_t epochs = 1;
  std::int64_t batch = 64;
  SharedSamples validate = {};  // a Dataset, or any Samples
  NamedMetrics metrics = {};    // computed in the validation; results are in Metrics::named
  optim::Schedule schedule = optim::schedule::constant();
  bool shuffle = true;  // a new order in each epoch
  /// Orders with all classes equally often (data::balanced_order), instead of every sample once.
  bool balance = false;
  std::optional<EarlyStopping> early_stopping = std::nullopt;
  std::vector<std::shared_ptr<Callback>> callbacks = {};
  std::int64_t report_every = 0;  // batches between calls of on_step; 0: about five calls a second
  /// A checkpoint is written to this file after each epoch, and when the training is stopped.
  std::filesystem::path checkpoint = {};
  /// Called between steps. If it returns true, `fit` writes the checkpoint and returns.
  std::function<bool()> stop = {};
  std::int64_t max_steps = 0;  // batches in this call of `fit`; 0: no limit
  /// Runs each step first operator by operator without its update, and stops the training at the first NaN or infinite
  /// value, even if the loss is finite. Slow, and keeps every value of a step in memory. Throws ArgumentError with
  /// Precision::fp16, whose scaled gradients may overflow.
  bool nan_trace = false;
  /// Changes the first column of features. random_crop and random_horizontal_flip of u8 images run on the device where
  /// the training set is resident (a Dataset that fits there); with another function, or two crops, all of it runs on
  /// the host and the data is streamed. The transform of image_set(dataset).with(...) is no part of this: its crops,
  /// flips and jitter (without hue) run on the device too, unless it resizes, or changes images in other ways.
  data::Augmentation augmentation = {};
  Mixing mixing = {};
  /// Threads that read streamed data; 0: 2 for a Dataset, num_threads() for other Samples.
  int loader_threads = 0;
  /// Of samples that are read from files while the training runs; in the validation as EvaluateOptions::bad_samples.
  data::BadSamples bad_samples = data::BadSamples::skip;
  /// The last batch of an epoch. Batch norm cannot train on a batch with one value per channel: use another choice than
  /// keep then.
  /// If the data set is smaller than a batch, all samples are one batch. Evaluations use all samples.
  LastBatch last_batch = LastBatch::keep;
};

struct EvaluateOptions {
  std::int64_t batch = 256;
  int k = 5;  // for the top-k accuracy, at most the number of classes
  NamedMetrics metrics = {};
  /// Of samples that are read from files. Those that are skipped count in no metric and not in Metrics::samples: where
  /// there are some, the others are evaluated once more without them. In a network that is divided among devices, the
  /// next sample takes the place of a skipped one instead, and counts twice.
  data::BadSamples bad_samples = data::BadSamples::skip;
  std::function<void(std::int32_t row)> left_out = {};  // told the row of each sample that does not count
};

}  // namespace concord
