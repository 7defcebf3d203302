// ProgressPrinter: prints a progress bar on a terminal, else one line for each epoch.
#pragma once

#include <optional>
#include <ostream>

#include "concord/core/export.hpp"
#include "concord/train/report.hpp"

namespace CONCORD_PUBLIC concord {

class ProgressPrinter : public Callback {
 public:
  /// `width` is the number of columns of the terminal behind `out`; empty for plain lines. The first form uses the
  /// width of the terminal behind std::cerr.
  explicit ProgressPrinter(std::ostream& out);
  ProgressPrinter(std::ostream& out, std::optional<int> width) : out_(out), width_(width) {}
  void on_begin(TrainingControl& training) override;
  void on_step(const StepReport& report) override;
  void on_epoch(const EpochReport& report) override;
  void on_end(const History& history) override;

 private:
  void clear_bar();

  std::ostream& out_;
  std::optional<int> width_;
};

}  // namespace concord
