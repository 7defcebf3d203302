// Connectionist temporal classification (ops/ctc.hpp): log-probabilities of prefixes and suffixes of the labels with
// blanks around them, over all paths (Graves et al., 2006, section 4.1).
#include "concord/ops/ctc.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <vector>

#include "concord/compare/reference64/families.hpp"

namespace concord::float64 {
namespace {

double log_sum(std::initializer_list<double> logs) {
  if (std::ranges::any_of(logs, [](double log) { return std::isnan(log); })) return NAN;
  const double largest = std::max(logs);
  if (std::isinf(largest)) return largest;
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - largest);
  return largest + std::log(sum);
}

/// One sample: its labels with blanks around them, and log p of each at each time.
struct Sample {
  std::vector<std::int32_t> path;
  std::vector<Values> log_p;  // by time, then by place in the path
  [[nodiscard]] bool may_skip_to(std::size_t place) const { return place >= 2 && path[place] != path[place - 2]; }
};

constexpr double kImpossible = -INFINITY;

/// By time and place: of all ways from the beginning to there, log p of the last time included.
std::vector<Values> prefixes(const Sample& sample) {
  std::vector<Values> logs(sample.log_p.size(), Values(sample.path.size(), kImpossible));
  for (std::size_t t = 0; t < logs.size(); ++t) {
    for (std::size_t i = 0; i < sample.path.size(); ++i) {
      const auto before = [&](std::size_t steps) { return i >= steps ? logs[t - 1][i - steps] : kImpossible; };
      const double reached = t == 0 ? (i < 2 ? 0 : kImpossible)
                                    : log_sum({before(0), before(1), sample.may_skip_to(i) ? before(2) : kImpossible});
      logs[t][i] = reached + sample.log_p[t][i];
    }
  }
  return logs;
}

/// By time and place: of all ways from there to the end, without log p of the first time.
std::vector<Values> suffixes(const Sample& sample) {
  const std::size_t places = sample.path.size();
  std::vector<Values> logs(sample.log_p.size(), Values(places, kImpossible));
  for (std::size_t t = logs.size(); t-- > 0;) {
    for (std::size_t i = 0; i < places; ++i) {
      const auto after = [&](std::size_t steps) {
        return i + steps < places ? logs[t + 1][i + steps] + sample.log_p[t + 1][i + steps] : kImpossible;
      };
      const bool may_skip = i + 2 < places && sample.may_skip_to(i + 2);
      logs[t][i] = t + 1 == logs.size() ? (i + 2 >= places ? 0 : kImpossible)
                                        : log_sum({after(0), after(1), may_skip ? after(2) : kImpossible});
    }
  }
  return logs;
}

double log_total(const Sample& sample, const std::vector<Values>& from_begin) {
  const std::size_t places = sample.path.size();
  if (from_begin.empty()) return places == 1 ? 0 : kImpossible;
  const Values& last = from_begin.back();
  return places == 1 ? last[0] : log_sum({last[places - 1], last[places - 2]});
}

/// Sample `n`; nothing where its lengths or labels cannot be.
std::optional<Sample> sample_of(const ReplayedNode& node, const ops::Ctc& op, const Values& log_p, std::size_t n) {
  const auto dims = node.inputs[0].shape().dims();
  const auto samples = static_cast<std::size_t>(dims[1]), classes = static_cast<std::size_t>(dims[2]);
  const std::int64_t most = node.inputs[1].shape().dims()[1];
  const std::int64_t times = node.inputs[2].values<std::int32_t>()[n],
                     length = node.inputs[3].values<std::int32_t>()[n];
  if (length < 0 || length > most || times < 0 || times > dims[0]) return {};
  Sample sample{{op.blank()}, {}};
  for (const std::int32_t label : node.inputs[1].values<std::int32_t>().subspan(n * static_cast<std::size_t>(most),
                                                                                static_cast<std::size_t>(length))) {
    if (label < 0 || label >= dims[2] || label == op.blank()) return {};
    sample.path.insert(sample.path.end(), {label, op.blank()});
  }
  for (std::size_t t = 0; t < static_cast<std::size_t>(times); ++t) {
    Values& now = sample.log_p.emplace_back();
    for (const std::int32_t label : sample.path) {
      now.push_back(log_p[(t * samples + n) * classes + static_cast<std::size_t>(label)]);
    }
  }
  return sample;
}

}  // namespace

Results ctc(const ReplayedNode& node) {
  const auto* op = dynamic_cast<const ops::Ctc*>(node.op);
  if (op == nullptr) return {};
  const Values log_p = doubles(node.inputs[0]);
  Values losses = zeros(node.results[0]), occupancy = zeros(node.results[1]);
  const auto dims = node.inputs[0].shape().dims();
  const auto samples = static_cast<std::size_t>(dims[1]), classes = static_cast<std::size_t>(dims[2]);
  for (std::size_t n = 0; n < samples; ++n) {
    const std::int64_t times = node.inputs[2].values<std::int32_t>()[n];
    const auto fill = [&](double loss, double value) {
      losses[n] = loss;
      const std::int64_t end = times >= 0 && times <= dims[0] ? times : dims[0];
      for (std::size_t t = 0; t < static_cast<std::size_t>(end); ++t) {
        std::fill_n(occupancy.begin() + static_cast<std::ptrdiff_t>((t * samples + n) * classes), classes, value);
      }
    };
    const std::optional<Sample> sample = sample_of(node, *op, log_p, n);
    if (!sample) {
      fill(NAN, NAN);
      continue;
    }
    const std::vector<Values> begin = prefixes(*sample), end = suffixes(*sample);
    const double total = log_total(*sample, begin);
    if (total == kImpossible) {
      fill(op->zero_infinity() ? 0 : INFINITY, op->zero_infinity() ? 0 : NAN);
      continue;
    }
    if (!std::isfinite(total)) {
      fill(-total, NAN);
      continue;
    }
    losses[n] = -total;
    for (std::size_t t = 0; t < begin.size(); ++t) {
      for (std::size_t i = 0; i < sample->path.size(); ++i) {
        const auto label = static_cast<std::size_t>(sample->path[i]);
        occupancy[(t * samples + n) * classes + label] += std::exp(begin[t][i] + end[t][i] - total);
      }
    }
  }
  return {{std::move(losses), std::move(occupancy)}};
}

}  // namespace concord::float64
