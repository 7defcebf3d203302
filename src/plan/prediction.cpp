// Buckets begin in their order, each when it is complete on the slowest rank and the one before it has ended. The
// update begins after the last.
#include "concord/plan/prediction.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "concord/core/check.hpp"
#include "concord/core/median.hpp"

namespace concord::plan {
namespace {

constexpr std::size_t kLeastBucket = std::size_t{256} << 10;
constexpr double kLittle = 0.01;  // of a step
constexpr double kMostSlowdown = 16;

struct Bucket {
  std::size_t bytes = 0;
  double ready = 0;
};

std::vector<Bucket> buckets_of(const RecordedStep& step, std::size_t most) {
  std::vector<std::size_t> bytes;
  for (const Gradient& gradient : step.gradients) bytes.push_back(gradient.bytes);
  const std::vector<std::size_t> numbers = collective::buckets_of(bytes, most);
  std::vector<Bucket> buckets;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (numbers[i] == buckets.size()) buckets.emplace_back();
    buckets.back().bytes += bytes[i];
    buckets.back().ready = std::max(buckets.back().ready, step.gradients[i].ready);
  }
  return buckets;
}

/// The inverse of the normal distribution's cumulative function, by Acklam's rational approximation (relative error
/// 1e-9), for p from 0.5 on.
double normal_quantile(double p) {
  constexpr std::array kA{-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr std::array kB{-5.447609879822406e+01, 1.615858368580409e+02,  -1.556989798598866e+02,
                          6.680131188771972e+01,  -1.328068155288572e+01, 1.0};
  constexpr std::array kC{-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr std::array kD{7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00,
                          1.0};
  constexpr double kTail = 0.97575;
  const auto polynomial = [](const auto& coefficients, double x) {
    double value = 0;
    for (const double coefficient : coefficients) value = value * x + coefficient;
    return value;
  };
  if (p < kTail) {
    const double q = p - 0.5, r = q * q;
    return q * polynomial(kA, r) / polynomial(kB, r);
  }
  const double q = std::sqrt(-2 * std::log1p(-p));
  return -polynomial(kC, q) / polynomial(kD, q);
}

}  // namespace

double expected_delay(std::span<const double> values, int count) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const auto n = static_cast<double>(sorted.size());
  double largest = 0, below = 0;  // the probability that all draws are below this value
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double up_to = std::pow(static_cast<double>(i + 1) / n, count);
    largest += sorted[i] * (up_to - below);
    below = up_to;
  }
  return std::max(0.0, largest - median(sorted));
}

double expected_largest(int count) {
  constexpr double kBlom = 0.375;
  return count <= 1 ? 0 : normal_quantile((count - kBlom) / (count + 1 - 2 * kBlom));
}

Planner::Times Planner::times(const Setting& setting) {
  const int ranks = setting.cluster.ranks;
  const double computation = step_.forward + step_.backward;
  // Several batches of a rank: only the last one's gradients are exchanged.
  const double earlier = (setting.accumulate - 1) * computation;
  Times times;
  if (ranks > 1) {
    const double one = setting.deviation ? *setting.deviation * computation * expected_largest(ranks)
                                         : expected_delay(step_.computations, ranks);
    times.waiting = one * std::sqrt(setting.accumulate);
  }
  const double slowest = 1 + times.waiting / (earlier + computation);
  double backward_end = (earlier + computation) * slowest;
  std::map<std::size_t, double> durations;
  const std::size_t most =
      setting.bucket > 0 ? setting.bucket : collective::bucket_bytes(ranks <= setting.cluster.per_machine);
  double done = 0, delay = 0;  // of computation by exchanges beside it
  for (const Bucket& bucket : buckets_of(step_, most)) {
    const auto [place, is_new] = durations.try_emplace(bucket.bytes, 0);
    if (is_new) {
      place->second = exchange_seconds(setting.cluster, static_cast<double>(bucket.bytes), setting.algorithm);
    }
    const double ready = setting.is_overlapped ? (earlier + bucket.ready) * slowest + delay : backward_end;
    const double begin = std::max(done, ready);
    done = begin + place->second;
    const double left = std::max(0.0, backward_end + delay - begin);  // computation, if it had the device for itself
    delay += setting.slowdown * std::min(left, place->second / (1 + setting.slowdown));
    times.exchange += place->second;
    ++times.buckets;
  }
  if (ranks == 1) done = delay = 0;
  backward_end += delay;
  times.exposed = std::max(0.0, done - backward_end);
  times.step = backward_end + times.exposed + step_.update + step_.idle;
  return times;
}

std::string Planner::limit_of(const Setting& setting, double step, double single) {
  if (step - single <= kLittle * single) return "computation";
  // What would be gained if one of them took no time.
  std::string limit = "computation";
  double least = step;
  const auto without = [&](const char* name, auto change) {
    Setting other = setting;
    change(other);
    const double time = times(other).step;
    if (time >= least) return;
    least = time;
    limit = name;
  };
  const bool is_one_machine = setting.cluster.ranks <= setting.cluster.per_machine;
  if (!is_one_machine) {
    without("bandwidth between machines", [](Setting& s) { s.cluster.between.per_byte = 0; });
    without("latency between machines", [](Setting& s) { s.cluster.between.latency = 0; });
    without("messages between machines", [](Setting& s) { s.cluster.between.gap = s.cluster.between.overhead = 0; });
  }
  without("bandwidth inside machines", [](Setting& s) { s.cluster.inside.per_byte = 0; });
  without("latency inside machines", [](Setting& s) { s.cluster.inside.latency = 0; });
  without("messages inside machines", [](Setting& s) { s.cluster.inside.gap = s.cluster.inside.overhead = 0; });
  without("computation beside exchanges", [](Setting& s) { s.slowdown = 0; });
  without("sums of gradients", [](Setting& s) { s.cluster.sum_per_byte = 0; });
  without("the slowest rank", [](Setting& s) { s.deviation = 0; });
  return limit;
}

Prediction Planner::predict(const Setting& setting) {
  const Times found = times(setting);
  Setting alone = setting;
  alone.cluster.ranks = 1;
  Prediction prediction{.ranks = setting.cluster.ranks,
                        .buckets = found.buckets,
                        .single = times(alone).step,
                        .step = found.step,
                        .exchange = found.exchange,
                        .exposed = found.exposed,
                        .waiting = found.waiting,
                        .limit = {}};
  prediction.limit = limit_of(setting, prediction.step, prediction.single);
  return prediction;
}

double Planner::slowdown_of(Setting setting, double seconds) {
  constexpr int kHalvings = 60;
  const auto step_with = [&](double slowdown) {
    setting.slowdown = slowdown;
    return times(setting).step;
  };
  if (step_with(0) >= seconds) return 0;
  const double longest = step_with(kMostSlowdown);
  CONCORD_CHECK(longest > seconds, ArgumentError,
                "exchanges beside computation do not explain a step of {:.4g} ms on {} ranks: even {:g} times slower "
                "computation makes it {:.4g} ms",
                seconds * 1e3, setting.cluster.ranks, 1 + kMostSlowdown, longest * 1e3);
  double below = 0, above = kMostSlowdown;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (below + above) / 2;
    (step_with(middle) < seconds ? below : above) = middle;
  }
  return above;
}

std::pair<std::size_t, Prediction> Planner::best_bucket(Setting setting) {
  std::size_t best = 0;
  double least = 0;
  for (std::size_t bucket = kLeastBucket; best == 0 || bucket / 2 < step_.bytes(); bucket *= 2) {
    setting.bucket = bucket;
    const double time = times(setting).step;
    if (best != 0 && time >= least) continue;
    best = bucket;
    least = time;
  }
  setting.bucket = best;
  return {best, predict(setting)};
}

}  // namespace concord::plan
