// OpenClTuner: the candidate kernels for a matrix multiplication, and the choice among them.
#include "concord/opencl/gemm/tuning/tuner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <utility>

#include "concord/core/check.hpp"
#include "concord/opencl/driver/status.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/tuning/trial.hpp"
#include "concord/opencl/program/build.hpp"

namespace concord::opencl {
namespace {

double products_in(const Gemm& gemm) {
  return static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k) *
         static_cast<double>(gemm.batch);
}

/// On a CPU, kernels for GPUs are tens of times slower than panels, and the plain kernel is slow on every device: they
/// are tried only on small problems.
bool is_worth_trying(const Context& context, const GemmImplementation& one, const Gemm& gemm) {
  constexpr double kSmall = 1e7;
  const bool is_slow = one.name == "reference" || (context.limits().is_cpu && one.name != "panel");
  return !is_slow || products_in(gemm) <= kSmall;
}

/// Each implementation with its own plan; the planned implementation first.
std::vector<GemmChoice> plans_for(Context& context, const Gemm& gemm) {
  const GemmImplementation& planned = planned_implementation(context, gemm);
  std::vector<GemmChoice> list{{std::string(planned.name), std::nullopt}};
  for (const GemmImplementation* one : gemm_implementations()) {
    const bool is_tried = gemm_refusal(*one, context, gemm).empty() && is_worth_trying(context, *one, gemm);
    if (is_tried && one != &planned) list.push_back({std::string(one->name), std::nullopt});
  }
  return list;
}

std::vector<GemmChoice> tilings_of(Context& context, const Gemm& gemm, const std::string& implementation) {
  std::vector<GemmChoice> list;
  for (GemmTiling& tiling : find_gemm_implementation(implementation)->tilings(context, gemm)) {
    list.push_back({implementation, std::move(tiling)});
  }
  return list;
}

struct Candidate {
  GemmChoice choice;
  std::unique_ptr<Kernel> kernel;
  std::string failure;
  bool lacks_memory = false;  // was the failure
  double seconds = INFINITY;
  [[nodiscard]] std::string name() const {
    if (!kernel) return choice.implementation;
    const std::string name = kernel->name();
    return name.substr(std::min(name.find(' ') + 1, name.size()));
  }
  void fail(const Error& error) {
    failure = error.what();
    lacks_memory = dynamic_cast<const OutOfMemory*>(&error) != nullptr;
  }
};

/// The candidates for one problem. Some are prepared ahead of the one that is measured, so that programs are built in
/// parallel.
class Candidates {
 public:
  Candidates(Context& context, const Gemm& gemm)
      : context_(context), gemm_(gemm), ahead_(std::max(1U, build_threads(context.device()))) {
    add(plans_for(context, gemm));
  }
  /// Adds the tilings of implementations whose plan took at most `most_seconds`. Call it after the plans were measured.
  void add_tilings(double most_seconds) {
    for (std::size_t i = 0, plans = list_.size(); i < plans; ++i) {
      if (list_[i].seconds <= most_seconds) add(tilings_of(context_, gemm_, list_[i].choice.implementation));
    }
  }
  [[nodiscard]] std::size_t size() const { return list_.size(); }
  [[nodiscard]] Candidate& at(std::size_t i) {
    for (; prepared_ < std::min(i + ahead_, list_.size()); ++prepared_) prepare(list_[prepared_]);
    return list_[i];
  }

 private:
  void add(std::vector<GemmChoice> choices) {
    for (GemmChoice& choice : choices) list_.push_back({std::move(choice), nullptr, {}});
  }
  void prepare(Candidate& candidate) {
    try {
      candidate.kernel = prepare_choice(context_, gemm_, candidate.choice, "gemm");
      if (!candidate.kernel) candidate.failure = "it does not accept the matrix multiplication";
    } catch (const Error& error) {
      candidate.fail(error);
    }
  }

  Context& context_;
  const Gemm& gemm_;
  std::size_t ahead_, prepared_ = 0;
  std::deque<Candidate> list_;  // whose members stay where they are
};

void measure(ProductTrial& trial, Candidate& candidate, double best_seconds) {
  constexpr double kHopeless = 1.5;  // times the best time; a slower first run is not repeated
  if (!candidate.failure.empty()) return;
  try {
    const ProductTrial::Outcome outcome = trial.run(*candidate.kernel, kHopeless * best_seconds);
    candidate.failure = outcome.fault;
    if (outcome.fault.empty()) candidate.seconds = outcome.seconds;
  } catch (const Error& error) {
    candidate.fail(error);
  }
}

// The device's clock rises and other processes disturb it, so that the best of many measurements is too optimistic. A
// candidate that seems better than the plan is measured again, alternating with the plan.
void measure_again(ProductTrial& trial, Candidate& planned, Candidate& best) {
  constexpr int kRounds = 3;
  planned.seconds = best.seconds = INFINITY;
  for (int round = 0; round < kRounds; ++round) {
    for (Candidate* one : {&planned, &best})
      one->seconds = std::min(one->seconds, trial.seconds(*one->kernel, INFINITY));
  }
}

}  // namespace

std::vector<TunableProduct> OpenClTuner::products_of(const std::function<void()>& prepare) {
  std::vector<TunableProduct> products;
  std::map<std::string, std::size_t, std::less<>> places;
  const auto note = [&](const Gemm& gemm) {
    const std::string key = tuning_key(gemm);
    noted_.emplace(key, gemm);
    const auto [place, is_new] = places.try_emplace(key, products.size());
    if (is_new) products.push_back({key, 2 * products_in(gemm), 0, tuning_.knows(key)});
    ++products[place->second].uses;
  };
  const auto outer = std::exchange(tuning_.listener, note);
  try {
    prepare();
  } catch (...) {
    tuning_.listener = outer;
    throw;
  }
  tuning_.listener = outer;
  return products;
}

TunedProduct OpenClTuner::tune(const std::string& key, double seconds) {
  return translated(context_.name(), "measuring the kernels of a matrix multiplication",
                    [&] { return measured(key, seconds); });
}

TunedProduct OpenClTuner::measured(const std::string& key, double seconds) {
  // The plan stays unless another kernel takes at most this fraction of its time: measurements vary by that much.
  constexpr double kGain = 0.97;
  // An implementation whose plan is slower than the best by this factor is not the fastest with another tile.
  constexpr double kNear = 2.5;
  constexpr double kMostSeconds = 1e6;  // that a clock can count to
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(std::min(seconds, kMostSeconds)));
  const auto noted = noted_.find(key);
  CONCORD_CHECK(noted != noted_.end(), ArgumentError, "no kernel was prepared for the matrix multiplication \"{}\"",
                key);
  ProductTrial trial(device_, context_, noted->second);
  Candidates candidates(context_, trial.gemm());

  TunedProduct result;
  Candidate* const planned = &candidates.at(0);
  Candidate* best = planned;
  const std::size_t plans = candidates.size();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i == 0 || Clock::now() < end) {
      Candidate& one = candidates.at(i);
      measure(trial, one, best->seconds);
      ++result.tried;
      if (!one.failure.empty()) result.refused.push_back(fmt::format("{}: {}", one.name(), one.failure));
      if (one.seconds < best->seconds) best = &one;
    }
    if (i + 1 == plans) candidates.add_tilings(kNear * best->seconds);
  }
  result.candidates = candidates.size();
  if (best != planned && planned->failure.empty()) {
    measure_again(trial, *planned, *best);
    if (best->seconds > kGain * planned->seconds) best = planned;
  }
  if (!std::isfinite(best->seconds)) {
    const std::string message = fmt::format("no kernel computes the matrix multiplication {} on {}: {}", key,
                                            context_.name(), fmt::join(result.refused, "; "));
    if (planned->lacks_memory) throw OutOfMemory(message);
    throw DeviceError(message);
  }
  result.planned = planned->name();
  result.planned_seconds = std::isfinite(planned->seconds) ? planned->seconds : 0;
  result.best = best->name();
  result.best_seconds = best->seconds;
  result.is_taken = result.tried > 1 || result.candidates == 1;
  if (result.is_taken) {
    tuning_.put(key, {best->choice, best->seconds, result.planned_seconds, result.planned});
  }
  return result;
}

}  // namespace concord::opencl
