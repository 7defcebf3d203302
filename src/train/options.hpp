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

#include "concord/core/export.hpp"
#include "concord/data/dataset.hpp"
#include "concord/data/loader.hpp"
#include "concord/optim/minimize.hpp"
#include "concord/optim/schedule.hpp"
#include "concord/train/metric.hpp"
#include "concord/train/report.hpp"

namespace CONCORD_PUBLIC concord {

struct TrainerOptions {
  std::uint64_t seed = 0;    // of first weights, order of samples, dropout
  std::string network = {};  // a name to keep in checkpoints; `resume` refuses one of another name
  optim::Clip clip = {};
  /// Parameters with a rate, weight decay or optimizer of their own, or frozen; the first that matches takes each.
  std::vector<optim::Group> groups = {};
  /// Batches an update: weights change after every so many batches, as they would after one so many times as large,
  /// whatever the loss averages over (concord::Loss); but for batch norm, which sees each batch alone. Those that are
  /// left at the end of an epoch make an update of their own, as a short last batch does. Clipping is of the joined
  /// gradient, schedules count updates. Batches whose labels are all ignored count nothing; an update of such alone is
  /// left out: weights and optimizer stay as they are.
  int accumulate = 1;
  /// Above 0: `evaluate`, `predict` and `save` use averages of the trained weights, with this part of the old average
  /// kept in each update (0.999, say). Running statistics are not averaged; see Trainer::refresh_statistics.
  double ema_decay = 0;
  /// Of products, in training and evaluation; with fp16 the loss is scaled (optim::MinimizeOptions::loss_scale).
  Precision precision = Precision::fp32;
  /// Of a training step, as CompileOptions::memory_budget; 0: none. Data sets on the device, weights and the
  /// optimizer's state are beside it.
  std::size_t memory_budget = 0;
  /// Stops at gradients that are not finite even when the loss is, before they are applied. Without, they are.
  bool check_gradients = true;
  /// Data sets are kept on the device as long as they take at most this part of its memory, all together.
  double resident_fraction = 0.4;
  /// Kept in the metadata of the files that `save` and `save_checkpoint` write: what it takes to use the weights beside
  /// the weights, such as a model's alphabet. UTF-8.
  std::map<std::string, std::string> metadata = {};
};

/// Ends a training whose validation does not improve. Needs FitOptions::validate. Counts anew after a resume.
struct EarlyStopping {
  enum class Monitor : std::uint8_t { loss, accuracy };
  Monitor monitor = Monitor::loss;
  std::string metric = {};        // the name of one of FitOptions::metrics, watched in place of the monitor
  bool larger_is_better = false;  // of that metric
  std::int64_t patience = 5;      // epochs without improvement before it ends
  double min_delta = 0;           // a smaller change is no improvement
  bool restore_best = true;       // put the best epoch's weights back at the end, but not when stopped: it may go on
};

/// What becomes of the samples that are left when the batches of an epoch do not come out even.
enum class LastBatch : std::uint8_t {
  keep,  // a batch of their own, however small
  drop,  // left out of this epoch; others are in the next, where samples are shuffled
  merge  // the batch before has them too
};

struct FitOptions {
  std::int64_t epochs = 1;
  std::int64_t batch = 64;
  std::optional<Dataset> validate = std::nullopt;
  NamedMetrics metrics = {};  // of the validation: Metrics::named
  optim::Schedule schedule = optim::schedule::constant();
  bool shuffle = true;  // anew each epoch
  std::optional<EarlyStopping> early_stopping = std::nullopt;
  std::vector<std::shared_ptr<Callback>> callbacks = {};
  std::int64_t report_every = 0;  // batches between calls of on_step; 0: about five times a second
  /// Written after each epoch, and when the training is stopped.
  std::filesystem::path checkpoint = {};
  /// Asked between steps; when it says true, `fit` writes the checkpoint and returns.
  std::function<bool()> stop = {};
  std::int64_t max_steps = 0;  // batches in this call of `fit`; 0: no limit
  /// Each step is first run operator by operator, without its update, and the training stops at the first value that is
  /// not finite, whether or not the loss would show it. Slow, and every value of a step takes memory of its own. Not
  /// for Precision::fp16, whose scaled gradients may overflow: `fit` throws ArgumentError.
  bool nan_trace = false;
  data::Augmentation augmentation = {};  // on the host; the data is then streamed to the device
  int loader_threads = 2;                // for data that is streamed
  /// Batch norm cannot train on a last batch of one value a channel; drop or merge it there. Where no batch is full,
  /// all samples are one batch whatever this says. Evaluations keep theirs: they use the running statistics.
  LastBatch last_batch = LastBatch::keep;
};

struct EvaluateOptions {
  std::int64_t batch = 256;
  int k = 5;  // for the top-k accuracy; at most the number of classes
  NamedMetrics metrics = {};
};

}  // namespace concord
