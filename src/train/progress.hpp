// ProgressPrinter: shows a training to people — a bar that moves on a terminal, a line an epoch elsewhere.
#pragma once

#include <optional>
#include <ostream>

#include "concord/core/export.hpp"
#include "concord/train/report.hpp"

namespace CONCORD_PUBLIC concord {

class ProgressPrinter : public Callback {
 public:
  /// `width`: columns of the terminal that `out` is, or nothing for plain lines. Without it that of std::cerr.
  explicit ProgressPrinter(std::ostream& out);
  ProgressPrinter(std::ostream& out, std::optional<int> width) : out_(out), width_(width) {}
  void on_step(const StepReport& report) override;
  void on_epoch(const EpochReport& report) override;
  void on_end(const History& history) override;

 private:
  void clear_bar();

  std::ostream& out_;
  std::optional<int> width_;
};

}  // namespace concord
