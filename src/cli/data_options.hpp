// DataOptions: --data, and how its images become inputs.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace concord::cli {

/// --data and the options on how images become inputs.
struct DataOptions {
  std::string text;
  std::int64_t image = 0, resize = 0;  // 0: that of the network, or of the training
  std::vector<float> mean = {}, deviation = {};
  bool skips_bad = true;         // rows of a table, recordings
  bool may_lack_labels = false;  // of npy: features alone, to predict
  bool is_trained_on = true;     // masks need more than one class
  bool is_as_stored = false;     // arrays keep their types, and numbers that are not finite
  std::string cache = {}, cache_directory = {};
  CLI::Option* mean_option = nullptr;

  void add(CLI::App& command, CLI::Option* data);
  /// --cache and --cache-dir, for commands that read images several times.
  void add_cache(CLI::App& command);
};

}  // namespace concord::cli
