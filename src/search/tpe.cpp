// TPE: settings by Parzen estimators of good and of other trials (Bergstra et al., "Algorithms for Hyper-Parameter
// Optimization", 2011), for each parameter by itself.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "concord/search/draw.hpp"
#include "concord/search/schedulers.hpp"

namespace concord::search {
namespace {

constexpr std::size_t kRandomTrials = 10;
constexpr int kCandidates = 24;

/// The number of trials that count as good, of so many.
std::size_t good_of(std::size_t trials) {
  return static_cast<std::size_t>(std::ceil(0.1 * static_cast<double>(trials)));
}

double normal_below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

/// A density on [0, 1]: the mean of a uniform one and of a normal one around each point, cut off at 0 and 1. The width
/// of a normal one is the distance to the farther neighbour.
class Parzen {
 public:
  explicit Parzen(std::vector<double> points) : points_(std::move(points)), widths_(points_.size()) {
    std::ranges::sort(points_);
    const double least = 1 / std::min(100.0, 1 + static_cast<double>(points_.size()));
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const double before = i == 0 ? points_[i] : points_[i] - points_[i - 1];
      const double after = i + 1 == points_.size() ? 1 - points_[i] : points_[i + 1] - points_[i];
      widths_[i] = std::clamp(std::max(before, after), least, 1.0);
    }
  }

  [[nodiscard]] double density(double x) const {
    double sum = 1;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const double z = (x - points_[i]) / widths_[i];
      sum += std::exp(-0.5 * z * z) / (std::sqrt(2 * std::numbers::pi) * widths_[i] * mass(i));
    }
    return sum / static_cast<double>(points_.size() + 1);
  }

  /// A point of this density from two numbers in [0, 1).
  [[nodiscard]] double draw(double which, double where) const {
    const auto i = static_cast<std::size_t>(which * static_cast<double>(points_.size() + 1));
    if (i >= points_.size()) return where;
    // The inverse of the distribution, by bisection.
    const double wanted = below(i, 0) + where * mass(i);
    double low = 0, high = 1;
    for (int step = 0; step < 40; ++step) {
      const double middle = (low + high) / 2;
      (below(i, middle) < wanted ? low : high) = middle;
    }
    return low;
  }

 private:
  [[nodiscard]] double below(std::size_t i, double x) const { return normal_below((x - points_[i]) / widths_[i]); }
  [[nodiscard]] double mass(std::size_t i) const { return below(i, 1) - below(i, 0); }

  std::vector<double> points_, widths_;
};

/// Weights of choices: how often each was taken, and once more.
class Frequencies {
 public:
  Frequencies(const std::vector<double>& units, std::size_t choices) : weights_(choices, 1.0) {
    for (const double unit : units) weights_[index(unit)] += 1;
    for (double& weight : weights_) weight /= static_cast<double>(units.size() + choices);
  }
  [[nodiscard]] double density(double unit) const { return weights_[index(unit)]; }
  /// The middle of the part of a choice, as Parameter::at cuts [0, 1).
  [[nodiscard]] double draw(double /*which*/, double where) const {
    std::size_t i = 0;
    while (i + 1 < weights_.size() && where >= weights_[i]) where -= weights_[i++];
    return (static_cast<double>(i) + 0.5) / static_cast<double>(weights_.size());
  }

 private:
  [[nodiscard]] std::size_t index(double unit) const {
    return std::min(static_cast<std::size_t>(unit * static_cast<double>(weights_.size())), weights_.size() - 1);
  }
  std::vector<double> weights_;
};

/// Of points drawn from `good`, the one that is most likelier there than in `rest`.
template <class Density>
double best_candidate(const Density& good, const Density& rest, const Philox& stream) {
  double best = 0, best_ratio = -1;
  for (int c = 0; c < kCandidates; ++c) {
    const auto at = static_cast<std::uint64_t>(2 * c);
    const double candidate = good.draw(unit_of(stream, at), unit_of(stream, at + 1));
    const double ratio = good.density(candidate) / rest.density(candidate);
    if (ratio > best_ratio) {
      best_ratio = ratio;
      best = candidate;
    }
  }
  return best;
}

class Tpe final : public Scheduler {
 public:
  Tpe(Space space, const SchedulerOptions& options) : space_(std::move(space)), options_(options) {}

  std::optional<Job> next() override {
    const auto trial = std::ssize(units_);
    if (trial == options_.trials) return std::nullopt;
    Job job{.trial = trial, .epochs = options_.epochs, .settings = {}};
    std::vector<double>& units = units_.emplace_back();
    const bool is_random = good_trials() == 0 || scores_.size() < kRandomTrials;
    for (std::size_t p = 0; p < space_.parameters().size(); ++p) {
      const Parameter& parameter = space_.parameters()[p];
      const double unit = is_random ? unit_of(stream_of("draw", options_.seed, trial, parameter.name), 0)
                                    : unit_by_results(parameter, p, trial);
      units.push_back(unit);
      job.settings.push_back({parameter.name, parameter.at(unit)});
    }
    return job;
  }

  void report(const Job& job, std::optional<double> score) override {
    scores_.emplace_back(score.value_or(std::numeric_limits<double>::infinity()), job.trial);
    std::ranges::sort(scores_);
  }

 private:
  [[nodiscard]] std::size_t good_trials() const {
    const auto is_good = [](const auto& scored) { return std::isfinite(scored.first); };
    return static_cast<std::size_t>(std::ranges::count_if(scores_, is_good));
  }

  [[nodiscard]] double unit_by_results(const Parameter& parameter, std::size_t place, std::int64_t trial) const {
    std::vector<double> good, rest;
    const std::size_t most = std::min(good_of(scores_.size()), good_trials());
    for (const auto& [score, of] : scores_) {
      (good.size() < most ? good : rest).push_back(units_[static_cast<std::size_t>(of)][place]);
    }
    const Philox stream = stream_of("tpe", options_.seed, trial, parameter.name);
    if (parameter.kind == Parameter::Kind::choice) {
      const std::size_t choices = parameter.choices.size();
      return best_candidate(Frequencies(good, choices), Frequencies(rest, choices), stream);
    }
    return best_candidate(Parzen(good), Parzen(rest), stream);
  }

  Space space_;
  SchedulerOptions options_;
  std::vector<std::vector<double>> units_;               // of each trial, one for each parameter
  std::vector<std::pair<double, std::int64_t>> scores_;  // and trials, the best first
};

}  // namespace

std::unique_ptr<Scheduler> make_tpe(const Space& space, const SchedulerOptions& options) {
  return std::make_unique<Tpe>(space, options);
}

}  // namespace concord::search
