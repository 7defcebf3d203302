// Runs an exported file beside the network that it was made of: with our own import, and with onnxruntime.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "concord/concord.hpp"

namespace concord::cli {

/// What a file is run on, and what it must give.
struct ExportCase {
  std::filesystem::path file;
  NamedTensors inputs;
  /// Outputs by name, for each run. Of a training, its losses, and those of the first run in full.
  std::vector<NamedTensors> expected;
  /// Outputs that are inputs of the next run.
  std::map<std::string, std::string> feedback = {};
};

/// The largest difference of an output over all runs.
struct OutputDifference {
  std::string output;
  double difference = 0, largest = 0;  // absolute; and the largest number of the output
  /// Relative to the largest number; infinite where one of both is not finite alone.
  [[nodiscard]] double relative() const;
};

/// By our own import on a device; only the first run.
[[nodiscard]] std::vector<OutputDifference> differences_by_import(const ExportCase& one, const DevicePtr& device);
/// By python3 with onnx and onnxruntime, after onnx.checker. Throws NotSupported if they are missing, FormatError with
/// what the checker or the runtime say.
[[nodiscard]] std::vector<OutputDifference> differences_by_onnxruntime(const ExportCase& one);

}  // namespace concord::cli
