// What the first rank of a training does for all.
#pragma once

#include <memory>
#include <utility>

#include "concord/collective/group.hpp"
#include "concord/train/report.hpp"

namespace concord::cli {

/// Whether this process reports for all ranks: it is alone, or the first of those that there still are.
inline bool is_first() {
  const collective::GroupPtr group = collective::group_of_process();
  return !group || group->rank() == 0;
}

/// Reports while this process is_first.
class FirstRankReports final : public Callback {
 public:
  explicit FirstRankReports(std::shared_ptr<Callback> report) : report_(std::move(report)) {}
  void on_begin(TrainingControl& training) override {
    if (is_first()) report_->on_begin(training);
  }
  void on_step(TrainingControl& training, const StepReport& step) override {
    if (is_first()) report_->on_step(training, step);
  }
  void on_epoch(TrainingControl& training, const EpochReport& epoch) override {
    if (is_first()) report_->on_epoch(training, epoch);
  }
  void on_end(TrainingControl& training, const History& history) override {
    if (is_first()) report_->on_end(training, history);
  }

 private:
  std::shared_ptr<Callback> report_;
};

}  // namespace concord::cli
