// Schedules against the rates of PyTorch's schedulers.
#include "concord/optim/schedule.hpp"

#include "goldens.hpp"

using namespace concord;
using namespace concord::test;
namespace schedule = concord::optim::schedule;

TEST_CASE("schedules give PyTorch's rates", "[optim]") {
  const nlohmann::json recorded = golden("schedules.json");
  const auto unit = optim::Unit::epoch;
  const std::map<std::string, optim::Schedule> schedules{
      {"step", schedule::step(7, 0.3)},
      {"multistep", schedule::multistep({5, 20, 21}, 0.5)},
      {"exponential", schedule::exponential(0.9)},
      {"cosine", schedule::cosine(39, 0.01)},
      {"warmup", schedule::warmup(8, schedule::constant(), 0.25, unit)},
      {"warmup cosine", schedule::warmup(5, schedule::cosine(30), 0.1, unit)},
      {"one cycle", schedule::one_cycle(40, {.unit = unit})},
      {"one cycle late", schedule::one_cycle(40, {.rise = 0.6, .start_divisor = 10, .end_divisor = 100, .unit = unit})},
      {"polynomial", schedule::polynomial(30, 2)},
      {"linear", schedule::polynomial(30)},
      {"restarts", schedule::cosine_restarts(10, 1, 0.02)},
      {"longer restarts", schedule::cosine_restarts(5, 2)},
      {"inverse square root", schedule::inverse_square_root(8, unit)},
  };
  REQUIRE(recorded.at("rates").size() == schedules.size());
  for (const auto& [name, rates] : recorded.at("rates").items()) {
    for (std::size_t t = 0; t < rates.size(); ++t) {
      INFO(name << " at " << t);
      const optim::Progress progress{.step = 1000, .epoch = static_cast<std::int64_t>(t)};
      CHECK(schedules.at(name)(recorded.at("base").get<double>(), progress) ==
            Approx(rates[t].get<double>()).epsilon(1e-9).margin(1e-15));
    }
  }
}

TEST_CASE("the rate falls on plateaus of the validation loss as PyTorch's does", "[optim]") {
  const nlohmann::json recorded = golden("schedules.json");
  const std::map<std::string, optim::Schedule> schedules{
      {"plateau", schedule::plateau({.factor = 0.5, .patience = 3})},
      {"plateau absolute",
       schedule::plateau(
           {.factor = 0.2, .patience = 2, .threshold = 0.005, .relative = false, .cooldown = 4, .end = 0.004})},
  };
  const auto losses = recorded.at("losses").get<std::vector<double>>();
  REQUIRE(recorded.at("plateaus").size() == schedules.size());
  for (const auto& [name, rates] : recorded.at("plateaus").items()) {
    REQUIRE(rates.back().get<double>() < rates[20].get<double>());
    for (std::size_t t = 0; t < rates.size(); ++t) {
      INFO(name << " at " << t);
      CHECK(schedules.at(name)(0.5, {.losses = std::span(losses).first(t)}) ==
            Approx(rates[t].get<double>()).epsilon(1e-9));
    }
  }
}

TEST_CASE("schedules say what they are", "[optim]") {
  CHECK(optim::Schedule([](double base, const optim::Progress&) { return base; }).description() == "custom");
  CHECK(schedule::cosine(20, 0, optim::Unit::step).description() == "cosine(length 20 steps, end 0)");
  const optim::Schedule warm = schedule::warmup(5, schedule::plateau({.factor = 0.5}));
  CHECK_THAT(warm.description(), contains("warmup(length 5 steps") && contains("then plateau(factor 0.5"));
  CHECK(warm.reads_losses());
  CHECK(!schedule::warmup(5).reads_losses());
}

TEST_CASE("a schedule counts steps or epochs, and warm-up hands over the rest", "[optim]") {
  const optim::Schedule by_step = schedule::step(10, 0.5, optim::Unit::step);
  CHECK(by_step(1, {.step = 25, .epoch = 0}) == 0.25);
  const optim::Schedule warm = schedule::warmup(10, by_step, 0.1);
  CHECK(warm(1, {.step = 0, .epoch = 0}) == Approx(0.1));
  CHECK(warm(1, {.step = 19, .epoch = 0}) == 1);
  CHECK(warm(1, {.step = 20, .epoch = 0}) == 0.5);
  CHECK(schedule::cosine(10)(1, {.step = 0, .epoch = 99}) == Approx(0).margin(1e-12));
}

TEST_CASE("rises over epochs change with each step", "[optim]") {
  const auto unit = optim::Unit::epoch;
  constexpr std::int64_t kSteps = 7;  // an epoch
  const auto check_equal = [&](const optim::Schedule& by_epochs, const optim::Schedule& by_steps) {
    for (std::int64_t t = 0; t < 4 * kSteps; ++t) {
      INFO(by_epochs.description() << " at " << t);
      const optim::Progress progress{
          .step = t + 100, .epoch = t / kSteps, .epoch_step = t % kSteps, .epoch_steps = kSteps};
      CHECK(by_epochs(0.5, progress) == by_steps(0.5, {.step = t}));
    }
  };
  check_equal(schedule::one_cycle(3, {.unit = unit}), schedule::one_cycle(3 * kSteps));
  check_equal(schedule::inverse_square_root(1, unit), schedule::inverse_square_root(kSteps));
  check_equal(schedule::warmup(2, schedule::constant(), 0.25, unit),
              schedule::warmup(2 * kSteps, schedule::constant(), 0.25));
  // What follows counts whole epochs.
  const optim::Schedule warm = schedule::warmup(1, schedule::step(1, 0.5), 0.1, unit);
  CHECK(warm(1, {.epoch = 0, .epoch_step = 0, .epoch_steps = kSteps}) == Approx(0.1));
  CHECK(warm(1, {.epoch = 1, .epoch_step = 6, .epoch_steps = kSteps}) == 1);
  CHECK(warm(1, {.epoch = 2, .epoch_step = 0, .epoch_steps = kSteps}) == 0.5);
}

TEST_CASE("what follows a warm-up in the other unit counts from its end", "[optim]") {
  const auto rate = [](const optim::Schedule& schedule, std::int64_t step, std::int64_t epoch_steps) {
    return schedule(
        1, {.step = step, .epoch = step / epoch_steps, .epoch_step = step % epoch_steps, .epoch_steps = epoch_steps});
  };
  // Epochs of 200 steps: those of the cosine begin at steps 500, 700, 900, …
  const optim::Schedule by_epochs = schedule::warmup(500, schedule::cosine(20));
  CHECK(rate(by_epochs, 250, 200) == Approx(2.0 / 3));
  CHECK(rate(by_epochs, 500, 200) == 1);
  CHECK(rate(by_epochs, 699, 200) == 1);
  CHECK(rate(by_epochs, 700, 200) == Approx(0.99384417));   // (1 + cos 9°) / 2
  CHECK(rate(by_epochs, 2499, 200) == Approx(0.57821723));  // (1 + cos 81°) / 2
  CHECK(rate(by_epochs, 2500, 200) == Approx(0.5));
  CHECK(rate(by_epochs, 4500, 200) == Approx(0).margin(1e-12));
  // Two epochs of 150 steps: the halvings are at steps 400, 500, …
  const optim::Schedule by_steps =
      schedule::warmup(2, schedule::step(100, 0.5, optim::Unit::step), 0.1, optim::Unit::epoch);
  CHECK(rate(by_steps, 300, 150) == 1);
  CHECK(rate(by_steps, 399, 150) == 1);
  CHECK(rate(by_steps, 400, 150) == 0.5);
  CHECK(rate(by_steps, 500, 150) == 0.25);
  // Three steps, then a rise over one epoch of four.
  const optim::Schedule rise = schedule::warmup(3, schedule::inverse_square_root(1, optim::Unit::epoch));
  CHECK(rate(rise, 3, 4) == 0.25);
  CHECK(rate(rise, 4, 4) == 0.5);
  CHECK(rate(rise, 6, 4) == 1);
  CHECK(rate(rise, 18, 4) == 0.5);  // √(4/16)
}

TEST_CASE("schedules refuse impossible lengths", "[optim]") {
  CHECK_THROWS_AS(schedule::step(0), ArgumentError);
  CHECK_THROWS_AS(schedule::cosine(-1), ArgumentError);
  CHECK_THROWS_AS(schedule::one_cycle(10, {.rise = 2}), ArgumentError);
  CHECK_THROWS_AS(schedule::cosine_restarts(10, 0), ArgumentError);
  CHECK_THROWS_AS(schedule::polynomial(10, -1), ArgumentError);
  CHECK_THROWS_AS(schedule::plateau({.factor = 1}), ArgumentError);
  CHECK_THROWS_AS(schedule::warmup(10, {}), ArgumentError);
}
