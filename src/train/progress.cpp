// ProgressPrinter: the bar and the lines.
#include "concord/train/progress.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "concord/core/platform.hpp"
#include "concord/train/trainer.hpp"

namespace concord {

namespace {

/// Says that data is the limit, from a part on that is worth a thought.
std::string waiting_text(double part) {
  return part < 0.02 ? std::string() : fmt::format("  waits for data {:.0f} %", 100 * part);
}

}  // namespace

ProgressPrinter::ProgressPrinter(std::ostream& out) : ProgressPrinter(out, terminal_width()) {}

void ProgressPrinter::clear_bar() {
  if (width_) out_ << '\r' << std::string(static_cast<std::size_t>(std::max(*width_ - 1, 0)), ' ') << '\r';
}

void ProgressPrinter::on_begin(TrainingControl& training) {
  std::vector<std::string> parts;
  for (const double share : training.trainer().shares()) parts.push_back(fmt::format("{:.1f} %", 100 * share));
  if (!parts.empty()) out_ << fmt::format("the devices split each batch: {}\n", fmt::join(parts, ", "));
}

void ProgressPrinter::on_step(const StepReport& report) {
  if (!width_) return;
  const std::string head = fmt::format("epoch {}/{} ", report.epoch, report.epochs);
  const std::string tail = fmt::format(" {}/{}  loss {:.4f}  {:.0f}/s{}", report.batch, report.batches, report.loss,
                                       report.samples_per_second, waiting_text(report.waiting));
  // One column stays free, or the terminal would begin a new line.
  const auto room = *width_ - static_cast<int>(head.size() + tail.size()) - 3;
  std::string bar;
  if (room >= 8) {
    const auto cells = static_cast<std::size_t>(std::min(room, 40));
    const std::size_t done = cells * static_cast<std::size_t>(report.batch) / static_cast<std::size_t>(report.batches);
    bar = fmt::format("[{}{}]", std::string(done, '#'), std::string(cells - done, '.'));
  }
  const std::string line = head + bar + tail;
  clear_bar();
  out_ << line.substr(0, static_cast<std::size_t>(std::max(*width_ - 1, 0))) << std::flush;
}

void ProgressPrinter::on_epoch(const EpochReport& report) {
  clear_bar();
  out_ << fmt::format("epoch {}/{}  loss {:.4f}", report.epoch, report.epochs, report.loss);
  if (report.validation) {
    out_ << fmt::format("  validation loss {:.4f}", report.validation->loss);
    if (report.validation->accuracy) out_ << fmt::format("  accuracy {:.2f} %", 100 * *report.validation->accuracy);
    for (const auto& [name, value] : report.validation->named) out_ << fmt::format("  {} {:.4g}", name, value);
  }
  out_ << fmt::format("  {:.2f} s  {:.0f} samples/s{}\n", report.seconds, report.samples_per_second,
                      waiting_text(report.waiting))
       << std::flush;
}

void ProgressPrinter::on_end(const History& history) {
  clear_bar();
  if (history.end == History::End::stopped) {
    out_ << (history.stopped_loss ? fmt::format("stopped within an epoch, loss {:.4f}\n", *history.stopped_loss)
                                  : "stopped\n");
  }
  if (history.end == History::End::early) {
    out_ << fmt::format("no improvement since epoch {}: ended early\n", history.best_epoch);
  }
  out_ << std::flush;
}

}  // namespace concord
