// Second runs: a device whose losses part between the ends of a training is looked into, and what is wrong there named.
#include "concord/compare/run/rerun_check.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "compare/wrong_device.hpp"
#include "concord/compare/run/batches.hpp"
#include "files.hpp"
#include "train/small_training.hpp"

namespace concord::test {
namespace {

CompareOptions options() {
  CompareOptions options{.steps = 6, .batch = 10, .seed = 3};
  options.seconds = 0.001;
  return options;
}

Comparison compared(const std::vector<DevicePtr>& list, const CompareOptions& how = options(), double rate = 0.05) {
  nn::Sequential network = small_net();
  return compare(network, "small", loss::cross_entropy, optim::Sgd{.lr = static_cast<float>(rate)}, small_data(60),
                 list, how);
}

const DevicePtr& right() { return devices().front(); }

const std::vector<float>& right_losses() {
  static const std::vector<float> losses = compared({right()}).runs[0].losses;
  return losses;
}

constexpr std::size_t kWrongStep = 3;  // from 0

// A step without its groups may be rounded otherwise; losses of two steps differ by 4e-3 or more.
bool is_loss_of_wrong_step(float loss) { return std::abs(loss - right_losses()[kWrongStep]) < 1e-4F; }

WrongOperator is_loss() {
  // The sum divided by the weights: an operator, or the end of the sum's.
  return [](const Operator& op) { return op.name() == "divide" || op.name() == "reduce_sum+divide"; };
}

WrongNumber in_the_wrong_step(float wrong) {
  return [wrong](float loss) { return is_loss_of_wrong_step(loss) ? std::optional(wrong) : std::nullopt; };
}

/// Only the kernel of the step itself is wrong, which is prepared first.
DevicePtr with_wrong_step(float wrong) {
  return wrong_device(right(), "wrong step", is_loss(), in_the_wrong_step(wrong), 1);
}

Comparison with_wrong_loss(float wrong) {
  return compared({right(), wrong_device(right(), "wrong", is_loss(), in_the_wrong_step(wrong))});
}

/// Devices that have trained side by side.
struct Trained {
  Trained(const std::vector<DevicePtr>& list, nn::Sequential layers)
      : network(std::move(layers)),
        batches(dataset, result.options.batch, result.options.seed),
        step(network, loss::cross_entropy, optim::Sgd{.lr = 0.05F}, {}, Precision::fp32, batches.source(),
             batches.batch()) {
    for (const DevicePtr& device : list) sides.emplace_back(step, device, result.options.seed);
    result.runs.resize(sides.size());
    for (std::int64_t i = 0; i < result.options.steps; ++i) {
      const Batch batch = batches.next();
      for (std::size_t d = 0; d < sides.size(); ++d) {
        sides[d].run(batch);
        result.runs[d].losses.push_back(sides[d].loss());
      }
    }
  }
  RerunCheck run_again(std::size_t place, std::int64_t until) {
    OperatorChecks checks(step, sides, result.options, result.check_cost);
    return concord::run_again(place, {.step = until}, step, sides, dataset, checks, result);
  }

  nn::Sequential network;
  Dataset dataset = small_data(60);
  Comparison result{"small", options(), {}};
  Batches batches;
  TrainingStep step;
  std::vector<Replica> sides;
};

PerturbedRun perturbed(std::vector<float> losses) { return {std::move(losses), 0, {}}; }

}  // namespace

TEST_CASE("a loss is suspicious that is not finite or parts 100 times further than rounding makes it", "[compare]") {
  const std::vector<float> expected{2, 2, 2, 2};
  const auto step = [&](std::vector<float> losses, const std::vector<PerturbedRun>& runs = {},
                        Precision precision = Precision::fp32) {
    const auto loss = suspicious_loss(losses, expected, runs, precision);
    return loss ? loss->step : 0;
  };
  CHECK(step({2, 2, 2, 2}) == 0);
  CHECK(step({2, 2.01F, 2.015F, 2}) == 0);
  CHECK(step({2, 2, 2.03F, 2}) == 3);
  CHECK(step({2, NAN, 2, 2}) == 2);
  CHECK(step({2, 2, 2, -INFINITY}) == 4);
  const std::vector<PerturbedRun> runs{perturbed({2, 2, 2, 2}), perturbed({2, 2.002F, 2, 2})};
  CHECK(step({2, 2, 2.03F, 2}, runs) == 0);
  CHECK(step({2.03F, 2, 2, 2}, runs) == 1);  // before rounding made it part
  CHECK(step({2, 2, 2.3F, 2}, runs) == 3);
  CHECK(step({2, 2, 2.3F, 2}, {}, Precision::bf16) == 0);
  CHECK(step({2, 2, 3, 2}, {}, Precision::bf16) == 3);
  const std::vector<float> lost{2, NAN, NAN, NAN}, other{2, 7, 7, 7};
  CHECK_FALSE(suspicious_loss(other, lost, {}, Precision::fp32));  // the first device's loss is the suspicious one
}

TEST_CASE("an operator that is wrong for numbers of one step in between is found and named", "[compare]") {
  const Comparison result = with_wrong_loss(1e3F);
  const DeviceRun& run = result.runs[1];
  CAPTURE(right_losses(), run.losses);
  REQUIRE(run.rerun_check);
  CHECK(run.rerun_check->loss.step == kWrongStep + 1);
  CHECK(run.rerun_check->loss.deviation > 100);
  CHECK(run.rerun_check->loss.explained < 1e-3);
  CHECK(run.rerun_check->checked_steps == 2);
  CHECK(run.rerun_check->mismatch == Mismatch::none);
  REQUIRE(run.first_deviation);
  CHECK(run.first_deviation->op.find("divide") != std::string::npos);
  CHECK(run.first_deviation->step == kWrongStep);
  CHECK_FALSE(result.runs[0].first_deviation);
  CHECK_FALSE(result.agrees());
  CHECK_THAT(result.table(), contains("exceeds its tolerance after 3 steps") &&
                                 contains("2 of its steps were run again and checked on its own values\n"));
}

TEST_CASE("the operator is named that makes a value which is not finite in between", "[compare]") {
  const Comparison result = with_wrong_loss(NAN);
  const DeviceRun& run = result.runs[1];
  REQUIRE(run.rerun_check);
  CHECK(run.rerun_check->non_finite.found);
  CHECK(run.rerun_check->non_finite_step == kWrongStep + 1);
  REQUIRE(run.first_deviation);
  CHECK(run.first_deviation->node == run.rerun_check->non_finite.node);
  CHECK_THAT(result.table(),
             contains("step 4 has a value that is not finite; the first is '" + run.first_deviation->node + "'"));
  const auto json = nlohmann::json::parse(result.json());
  CHECK(json["devices"][1]["rerun_check"]["non_finite"]["node"] == run.first_deviation->node);
  CHECK(json["devices"][1]["rerun_check"]["non_finite"]["step"] == kWrongStep + 1);
  CHECK(json["devices"][1]["rerun_check"]["loss_deviation"].is_null());
  CHECK(json["devices"][0]["rerun_check"].is_null());
}

TEST_CASE("a comparison begins with the user's weights, and so does its second run", "[compare]") {
  const TemporaryFolder folder;
  CompareOptions how = options();
  how.weights = folder / "w.safetensors";
  Trainer trainer = small_trainer(right());
  static_cast<void>(trainer.fit(small_data(60), {.epochs = 10, .batch = 10}));
  trainer.save(how.weights);
  const Comparison result = compared({right(), right()}, how);
  CHECK(result.runs[1].losses == result.runs[0].losses);
  CHECK(result.runs[0].losses[0] < 0.7F * right_losses()[0]);  // what the weights have learned
  CHECK(result.agrees());

  const Comparison lost = compared({right(), right()}, how, 1e19);
  for (const DeviceRun& run : lost.runs) {
    REQUIRE(run.rerun_check);
    CHECK(run.rerun_check->mismatch == Mismatch::none);  // of other first weights the first loss is another
    CHECK(run.rerun_check->non_finite.found);
    CHECK(run.rerun_check->non_finite_step == run.rerun_check->loss.step);
  }
}

TEST_CASE("a training that overflows everywhere names the first value, and no operator as wrong", "[compare]") {
  const Comparison result = compared({right(), right()}, options(), 1e19);
  for (const DeviceRun& run : result.runs) {
    REQUIRE(run.rerun_check);
    CHECK(run.rerun_check->non_finite.found);
    CHECK(run.rerun_check->non_finite.node == result.runs[0].rerun_check->non_finite.node);
    CHECK_FALSE(run.first_deviation);
  }
  CHECK_FALSE(result.agrees());
}

TEST_CASE("a step that does not repeat is told", "[compare]") {
  bool was_wrong = false;
  const auto once = [&](float loss) {
    if (!is_loss_of_wrong_step(loss) || was_wrong) return std::optional<float>();
    was_wrong = true;
    return std::optional(1e3F);
  };
  const Comparison result = compared({right(), wrong_device(right(), "wrong once", is_loss(), once)});
  REQUIRE(result.runs[1].rerun_check);
  CHECK(result.runs[1].rerun_check->mismatch == Mismatch::first_run);
  CHECK_FALSE(result.runs[1].first_deviation);
  CHECK(result.disagreement() == "step 4 on " + right()->info().id + ", run again, differs from the first run");
}

TEST_CASE("a step is told that makes other numbers than its kernels one by one", "[compare]") {
  const Comparison result = compared({right(), with_wrong_step(1e3F)});
  REQUIRE(result.runs[1].rerun_check);
  CHECK(result.runs[1].rerun_check->mismatch == Mismatch::one_by_one);
  CHECK(result.disagreement() ==
        "step 4 on " + right()->info().id + ", run again, differs from its kernels run one by one");
}

TEST_CASE("a value that is not finite, and that no kernel by itself makes, is told", "[compare]") {
  const Comparison result = compared({right(), with_wrong_step(NAN)});
  REQUIRE(result.runs[1].rerun_check);
  CHECK_FALSE(result.runs[1].rerun_check->non_finite.found);
  CHECK_THAT(result.disagreement(), contains("differs from its kernels run one by one"));
}

TEST_CASE("a value of the first device alone that is not finite blames no other", "[compare]") {
  const Comparison result = compared({wrong_device(right(), "wrong", is_loss(), in_the_wrong_step(NAN)), right()});
  REQUIRE(result.runs[0].rerun_check);
  CHECK(result.runs[0].rerun_check->non_finite.found);
  CHECK(result.runs[0].rerun_check->checked_steps == 0);
  CHECK_FALSE(result.runs[1].rerun_check);
  CHECK_FALSE(result.runs[1].first_deviation);
  CHECK(result.disagreement() == "the loss of step 4 on " + right()->info().id + " is not finite");
}

TEST_CASE("an operator that was wrong long before the loss in question is found", "[compare]") {
  Trained trained({right(), wrong_device(right(), "wrong", is_loss(), in_the_wrong_step(1e3F))}, small_net());
  const RerunCheck found = trained.run_again(1, 6);
  CHECK(found.checked_steps == 2 + kWrongStep + 1);  // the last two, and from the first until the wrong one
  REQUIRE(trained.result.runs[1].first_deviation);
  CHECK(trained.result.runs[1].first_deviation->step == kWrongStep);
}

TEST_CASE("steps of right devices are, run again, those of their kernels one by one", "[compare]") {
  for (const bool has_state : {false, true}) {
    INFO((has_state ? "with running statistics and random masks" : "plain"));
    nn::Sequential network = has_state ? nn::Sequential{nn::Linear{6, 16}, nn::BatchNorm1d{16}, nn::ReLU{},
                                                        nn::Dropout{0.3F}, nn::Linear{16, 3}}
                                       : small_net();
    Trained trained(devices(), std::move(network));
    for (std::size_t d = 1; d < trained.sides.size(); ++d) {
      INFO(trained.sides[d].device->info().id);
      const RerunCheck found = trained.run_again(d, 5);
      CHECK(found.checked_steps == 5);
      CHECK(found.mismatch == Mismatch::none);
      CHECK_FALSE(trained.result.runs[d].first_deviation);
      CHECK(trained.result.runs[d].checked_values > 0);
    }
  }
}

}  // namespace concord::test
