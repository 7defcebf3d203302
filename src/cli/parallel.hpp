// SharingOptions: how several devices share a training.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

#include "concord/train/options.hpp"

namespace concord::cli {

/// --parallel pipeline=2,micro=8, --parallel tensor=2 or --parallel hybrid=2.
struct ParallelOption {
  std::string text;  // empty: each device trains on other batches
  void add(CLI::App& command);
  /// Throws ArgumentError for a text that is not of this form.
  [[nodiscard]] Pipeline pipeline() const;
  /// As `pipeline`; none of the two is on without a text.
  [[nodiscard]] ModelParallel model_parallel() const;
  /// Throws ArgumentError if a training on so many devices, with so many batches an update, cannot be what the text
  /// says. 0 devices: not known.
  void check(std::size_t devices, int accumulate) const;
};

/// --shares speed, --shares 3,1.
struct SharesOption {
  std::string text = "equal";
  void add(CLI::App& command);
  /// Throws ArgumentError for a text that is none of these.
  [[nodiscard]] BatchSplit get() const;
  /// Throws ArgumentError if there are not as many shares as devices; 0 devices: not known.
  void check(std::size_t devices) const;
};

/// --parallel, --shares, --sync-batch-norm and --gradients.
struct SharingOptions {
  ParallelOption parallel;
  SharesOption shares;
  bool sync_batch_norm = false;
  std::string gradients = "fp32";
  void add(CLI::App& command);
  /// As those of its parts, and if they contradict each other. `named`: the devices of --devices, 0 without it; a
  /// process that a launcher started needs none, and as the only rank it is one device, unless it names more for ranks
  /// of its own. `have_nodes`: other machines may have further devices.
  void check(std::size_t named, bool have_nodes, int accumulate) const;
  void apply(TrainerOptions& options) const;
};

}  // namespace concord::cli
