// ParallelOption: how several devices share a training.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

#include "concord/train/options.hpp"

namespace concord::cli {

/// --parallel pipeline=2,micro=8.
struct ParallelOption {
  std::string text;  // empty: each device trains on other batches
  void add(CLI::App& command);
  /// Throws ArgumentError for a text that is not of this form.
  [[nodiscard]] Pipeline pipeline() const;
  /// Throws ArgumentError if a training on so many devices, with so many batches an update, cannot be what the text
  /// says. 0 devices: not known.
  void check(std::size_t devices, int accumulate) const;
};

}  // namespace concord::cli
