// CTC: a sample after the other in parallel, the two recursions of each in double precision.
#include "concord/ops/ctc.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels.hpp"

namespace concord::cpu {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

struct CtcSizes {
  std::int64_t steps, samples, classes, labels;  // T, N, C, S
  std::int32_t blank;
  bool zero_infinity;
  [[nodiscard]] std::int64_t places() const { return 2 * labels + 1; }
};

double log_add(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kImpossible ? a : a + std::log1p(std::exp(b - a));
}

/// The target of one sample with blanks around its labels: place s is a blank for even s.
struct Path {
  const std::int32_t* labels;
  std::int32_t blank;
  std::int64_t places;
  [[nodiscard]] std::int32_t at(std::int64_t s) const { return s % 2 == 0 ? blank : labels[s / 2]; }
  /// Whether a path may go from place s − 2 to s.
  [[nodiscard]] bool skips_to(std::int64_t s) const { return s >= 2 && s % 2 == 1 && at(s) != at(s - 2); }
};

bool is_valid(const CtcSizes& s, const std::int32_t* labels, std::int64_t input, std::int64_t length) {
  if (input < 0 || input > s.steps || length < 0 || length > s.labels) return false;
  return std::all_of(labels, labels + length,
                     [&](std::int32_t label) { return label >= 0 && label < s.classes && label != s.blank; });
}

/// Fills alpha, (input, places), and returns log p(target).
double forward(const CtcSizes& s, const Path& path, const float* log_p, std::int64_t input, double* alpha) {
  const std::int64_t stride = s.samples * s.classes;
  for (std::int64_t t = 0; t < input; ++t) {
    const double* before = alpha + (t - 1) * s.places();
    for (std::int64_t i = 0; i < path.places; ++i) {
      double sum = t == 0 && i < 2 ? 0 : kImpossible;
      if (t > 0) {
        sum = before[i];
        if (i >= 1) sum = log_add(sum, before[i - 1]);
        if (path.skips_to(i)) sum = log_add(sum, before[i - 2]);
      }
      alpha[t * s.places() + i] = sum + static_cast<double>(log_p[t * stride + path.at(i)]);
    }
  }
  if (input == 0) return path.places == 1 ? 0 : kImpossible;
  const double* last = alpha + (input - 1) * s.places() + path.places - 1;
  return path.places == 1 ? last[0] : log_add(last[0], last[-1]);
}

/// Adds to `occupancy` the probabilities of all places at all times. beta: (2, places).
void backward(const CtcSizes& s, const Path& path, const float* log_p, std::int64_t input, const double* alpha,
              double* beta, double log_total, float* occupancy) {
  const std::int64_t stride = s.samples * s.classes;
  for (std::int64_t t = input; t-- > 0;) {
    double* now = beta + t % 2 * s.places();
    const double* after = beta + (t + 1) % 2 * s.places();
    const auto onward = [&](std::int64_t i) {
      return after[i] + static_cast<double>(log_p[(t + 1) * stride + path.at(i)]);
    };
    for (std::int64_t i = 0; i < path.places; ++i) {
      double sum = i + 2 >= path.places ? 0 : kImpossible;
      if (t + 1 < input) {
        sum = onward(i);
        if (i + 1 < path.places) sum = log_add(sum, onward(i + 1));
        if (i + 2 < path.places && path.skips_to(i + 2)) sum = log_add(sum, onward(i + 2));
      }
      now[i] = sum;
      const double probability = std::exp(alpha[t * s.places() + i] + sum - log_total);
      occupancy[t * stride + path.at(i)] += static_cast<float>(probability);
    }
  }
}

void run_sample(const CtcSizes& s, const Pointers& pointers, std::int64_t n) {
  const float* log_p = pointers.input<float>(0) + n * s.classes;
  const std::int64_t input = pointers.input<std::int32_t>(2)[n], length = pointers.input<std::int32_t>(3)[n];
  const Path path{pointers.input<std::int32_t>(1) + n * s.labels, s.blank, 2 * length + 1};
  float& loss = pointers.output<float>(0)[n];
  float* occupancy = pointers.output<float>(1) + n * s.classes;
  // `value` up to the input's end, 0 after it.
  const auto fill = [&](float value) {
    const bool known = input >= 0 && input <= s.steps;
    for (std::int64_t t = 0; t < s.steps; ++t) {
      std::fill_n(occupancy + t * s.samples * s.classes, s.classes, t < input || !known ? value : 0.0F);
    }
  };
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  if (!is_valid(s, path.labels, input, length)) {
    loss = kNaN;
    fill(kNaN);
    return;
  }
  double* alpha = pointers.workspace<double>() + n * (s.steps + 2) * s.places();
  const double log_total = forward(s, path, log_p, input, alpha);
  const bool possible = std::isfinite(log_total), is_zero = log_total == kImpossible && s.zero_infinity;
  loss = is_zero ? 0 : static_cast<float>(-log_total);
  fill(possible || is_zero ? 0 : kNaN);
  if (possible) backward(s, path, log_p, input, alpha, alpha + s.steps * s.places(), log_total, occupancy);
}

PreparedKernel prepare_ctc(Backend& backend, const ops::Ctc& op, const KernelRequest& request) {
  const Shape& src = request.inputs[0].shape;
  const CtcSizes sizes{src[0], src[1], src[2], request.inputs[1].shape[1], op.blank(), op.zero_infinity()};
  const auto workspace = static_cast<std::size_t>(sizes.samples * (sizes.steps + 2) * sizes.places()) * sizeof(double);
  const int threads = backend.threads;
  return all_plain(request, loop_kernel("ctc samples", workspace, [sizes, threads](const Pointers& pointers) {
                     parallel_for(sizes.samples, threads, sizes.steps * sizes.samples * sizes.places() >= 1024,
                                  [&](std::int64_t n) { run_sample(sizes, pointers, n); });
                   }));
}

}  // namespace

void add_ctc(Kernels& kernels) { kernels.add<ops::Ctc, prepare_ctc>(); }

}  // namespace concord::cpu
