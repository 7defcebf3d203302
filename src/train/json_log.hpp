// JsonLog: writes a training as JSON lines, one for each epoch and one at the end, for other programs.
#pragma once

#include <filesystem>
#include <fstream>

#include "concord/core/export.hpp"
#include "concord/train/report.hpp"

namespace CONCORD_PUBLIC concord {

/// {"event": "epoch", "epoch": 1, "steps": 938, "loss": …, "rate": …, "seconds": …, "samples_per_second": …,
///  "waiting": …,
///  "validation": {"loss": …, "accuracy": …, "top_k": …, "k": 5, "samples": 10000, "metrics": {"name": …}}}
/// {"event": "end", "reason": "finished" | "stopped" | "early"}
/// {"event": "test", "test": {as validation}}, where `on_test` is called
class JsonLog : public Callback {
 public:
  /// Appends to the file. Throws IoError if the file cannot be written, here and in later calls.
  explicit JsonLog(std::filesystem::path path);
  void on_epoch(const EpochReport& report) override;
  void on_end(const History& history) override;
  /// Writes the metrics of the trained network on a test set. The program calls it; `fit` does not.
  void on_test(const Metrics& metrics);

 private:
  void write(const std::string& line);

  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace concord
