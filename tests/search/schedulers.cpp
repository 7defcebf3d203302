// Schedulers on made-up objectives.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "concord/core/text.hpp"
#include "concord/search/scheduler.hpp"
#include "files.hpp"

namespace concord::test {
namespace {

using search::Job;
using search::Scheduler;
using search::SchedulerKind;
using search::SchedulerOptions;
using search::Space;

double number(const search::Settings& settings, std::size_t i) {
  return number_in_text<double>(settings.at(i).value).value();
}

/// What a search has found and spent.
struct Found {
  double best = std::numeric_limits<double>::infinity();
  std::int64_t epochs = 0, trials = 0;
};

/// Trains one job after the other; `loss` gets the settings and the epochs.
template <class Loss>
Found search_alone(Scheduler& scheduler, const Loss& loss) {
  Found found;
  std::map<std::int64_t, std::int64_t> epochs;  // of each trial
  while (const auto job = scheduler.next()) {
    const double value = loss(job->settings, job->epochs);
    found.best = std::min(found.best, value);
    found.epochs += job->epochs - epochs[job->trial];
    epochs[job->trial] = job->epochs;
    scheduler.report(*job, value);
  }
  found.trials = std::ssize(epochs);
  return found;
}

/// A loss that falls with epochs to what the settings allow, as trainings do. Early losses say much, but not all.
double made_up_loss(const search::Settings& settings, std::int64_t epochs) {
  const double lr = std::log10(number(settings, 0)), width = number(settings, 1);
  const double floor = 0.3 + 0.2 * (lr + 2) * (lr + 2) + 0.02 * std::abs(width - 6);
  return floor + (1.5 + 0.1 * width) * std::exp(-0.35 * static_cast<double>(epochs));
}

}  // namespace

TEST_CASE("random and grid train every trial to the end", "[search]") {
  const Space space = Space::parse("lr=log(1e-4,1,5) width=[1,4]");
  const auto random = search::make_scheduler(space, {.trials = 7, .seed = 3, .epochs = 4});
  const Found of_random = search_alone(*random, made_up_loss);
  CHECK((of_random.trials == 7 && of_random.epochs == 28));
  const auto grid = search::make_scheduler(space, {.kind = SchedulerKind::grid, .epochs = 2});
  const Found of_grid = search_alone(*grid, made_up_loss);
  CHECK((of_grid.trials == 20 && of_grid.epochs == 40));
}

TEST_CASE("asha promotes the best third of a rung as soon as it is known", "[search]") {
  const Space space = Space::parse("x=[0,1.0]");
  const auto asha =
      search::make_scheduler(space, {.kind = SchedulerKind::asha, .trials = 9, .epochs = 9, .min_epochs = 1, .eta = 3});
  // The scores of trials 0 … 8 in the first rung.
  const std::vector<double> scores{5, 3, 4, 1, 9, 8, 2, 7, 6};
  std::vector<std::string> order;
  while (const auto job = asha->next()) {
    order.push_back(fmt::format("{}@{}", job->trial, job->epochs));
    CHECK(job->is_last == (job->epochs == 9));
    asha->report(*job, scores.at(static_cast<std::size_t>(job->trial)));
  }
  // Of {5,3,4} the best is trial 1; of six trial 3; of nine trial 6; and of these three trial 3.
  CHECK(order == std::vector<std::string>{"0@1", "1@1", "2@1", "1@3", "3@1", "3@3", "4@1", "5@1", "6@1", "6@3", "3@9",
                                          "7@1", "8@1"});
}

TEST_CASE("asha does not wait for a slow trial, and never promotes a failed one", "[search]") {
  const Space space = Space::parse("x=[0,1.0]");
  const auto asha = search::make_scheduler(space, {.kind = SchedulerKind::asha, .trials = 4, .epochs = 5, .eta = 2});
  const Job slow = asha->next().value();
  const Job failing = asha->next().value();
  const Job good = asha->next().value();
  asha->report(failing, std::nullopt);
  asha->report(good, 1.0);
  const Job promoted = asha->next().value();
  CHECK((promoted.trial == good.trial && promoted.epochs == 2));
  CHECK(promoted.settings == good.settings);
  const Job last = asha->next().value();
  CHECK(last.trial == 3);
  CHECK_FALSE(asha->next());  // it waits
  asha->report(slow, std::nullopt);
  asha->report(last, std::nullopt);
  CHECK_FALSE(asha->next());  // two of four may go on, but the others failed
  asha->report(promoted, 1.0);
  CHECK_FALSE(asha->next());
}

TEST_CASE("asha finds within 1 % of the best of a grid with a quarter of its epochs", "[search]") {
  const Space space = Space::parse("lr=log(1e-4,1,9) width=[2,10]");
  constexpr std::int64_t kEpochs = 27;
  const auto grid = search::make_scheduler(space, {.kind = SchedulerKind::grid, .epochs = kEpochs});
  const Found of_grid = search_alone(*grid, made_up_loss);
  REQUIRE(of_grid.epochs == 81 * kEpochs);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const auto asha =
        search::make_scheduler(space, {.kind = SchedulerKind::asha, .trials = 110, .seed = seed, .epochs = kEpochs});
    const Found of_asha = search_alone(*asha, made_up_loss);
    INFO("seed " << seed << ": " << of_asha.best << " after " << of_asha.epochs << " epochs; the grid " << of_grid.best
                 << " after " << of_grid.epochs);
    CHECK(of_asha.trials == 110);
    CHECK(of_asha.best <= 1.01 * of_grid.best);
    CHECK(4 * of_asha.epochs <= of_grid.epochs);
  }
}

TEST_CASE("tpe beats random search on a quadratic", "[search]") {
  const Space space = Space::parse("x=[-5.0,5] y=log(1e-3,1e3) kind={a,b,c}");
  const auto loss = [](const search::Settings& settings, std::int64_t) {
    const double x = number(settings, 0) - 1.5, y = std::log10(number(settings, 1)) + 1;
    return x * x + y * y + (settings[2].value == "b" ? 0 : 2);
  };
  int wins = 0;
  double of_tpe = 0, of_random = 0;
  constexpr int kSeeds = 40;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto best_of = [&](SchedulerKind kind) {
      return search_alone(*search::make_scheduler(space, {.kind = kind, .trials = 60, .seed = seed}), loss).best;
    };
    const double tpe = best_of(SchedulerKind::tpe), random = best_of(SchedulerKind::random);
    wins += tpe < random ? 1 : 0;
    of_tpe += tpe / kSeeds;
    of_random += random / kSeeds;
  }
  INFO("mean best of tpe " << of_tpe << ", of random " << of_random << "; tpe is better " << wins << " times");
  CHECK(wins >= 28);
  CHECK(of_tpe < 0.6 * of_random);
}

TEST_CASE("tpe goes on when trials fail", "[search]") {
  const Space space = Space::parse("x=[0,1.0]");
  const auto tpe = search::make_scheduler(space, {.kind = SchedulerKind::tpe, .trials = 40});
  std::set<std::int64_t> trials;
  while (const auto job = tpe->next()) {
    trials.insert(job->trial);
    tpe->report(*job, number(job->settings, 0) > 0.5 ? std::nullopt : std::optional(1.0));
  }
  CHECK(trials.size() == 40);
}

TEST_CASE("options of schedulers out of range are refused", "[search]") {
  const Space space = Space::parse("x=[0,1.0]");
  const auto refusal = [&](const SchedulerOptions& options) {
    return message_of<ArgumentError>([&] { static_cast<void>(search::make_scheduler(space, options)); });
  };
  CHECK(contains(refusal({.trials = 0}), "at least 1 trial"));
  CHECK(contains(refusal({.epochs = 0}), "at least 1 epoch"));
  CHECK(contains(refusal({.kind = SchedulerKind::asha, .epochs = 3, .eta = 1}), "eta is at least 2"));
  CHECK(contains(refusal({.kind = SchedulerKind::asha, .epochs = 3, .min_epochs = 3}), "after 3 of 3 epochs"));
  CHECK(contains(refusal({.kind = SchedulerKind::grid}), "a grid needs the number of values"));
}

}  // namespace concord::test
