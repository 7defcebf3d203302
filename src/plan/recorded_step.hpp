// RecordedStep: what the timeline of a training says about its steps (--trace). Internal to the library.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "concord/plan/link.hpp"

namespace concord::plan {

/// A gradient, and when it is complete: seconds from the begin of the step.
struct Gradient {
  std::string parameter;
  std::size_t bytes = 0;
  double ready = 0;
};

/// Times are medians over the recorded steps, in seconds.
struct RecordedStep {
  std::string device;  // "opencl:0"
  int ranks = 1;       // of the recorded training
  int steps = 0;       // but for the first ones, in which caches are filled
  double forward = 0;  // until the backward pass begins
  double backward = 0;
  double update = 0;
  double idle = 0;                   // until the next step begins
  std::vector<Gradient> gradients;   // by `ready`
  std::vector<double> computations;  // of each step: forward and backward pass
  /// Of a training on several ranks, through the host: the shortest exchange of each size.
  std::vector<MeasuredExchange> exchanges;

  /// Of one rank alone.
  [[nodiscard]] double seconds() const { return forward + backward + update + idle; }
  [[nodiscard]] std::size_t bytes() const;
  /// All times times `factor`.
  [[nodiscard]] RecordedStep scaled(double factor) const;
};

/// Reads a trace of `train` or `bench`. Errors begin with `subject`. Throws FormatError for a file that is no trace or
/// has no training steps.
[[nodiscard]] RecordedStep read_trace(std::string_view text, std::string_view subject);

}  // namespace concord::plan
