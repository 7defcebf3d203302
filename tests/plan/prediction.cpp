// Steps whose times are computed by hand, and what a trace says of a step.
#include "concord/plan/prediction.hpp"

#include <fmt/format.h>

#include "files.hpp"

namespace concord::test {
namespace {

using plan::Planner;
using plan::RecordedStep;
using plan::Setting;

constexpr double kMilli = 1e-3;

/// Forward 10 ms, backward 10, update 2, idle 1; one gradient is complete in the middle of the backward pass.
RecordedStep step() {
  return {.device = "opencl:0",
          .steps = 1,
          .forward = 10 * kMilli,
          .backward = 10 * kMilli,
          .update = 2 * kMilli,
          .idle = 1 * kMilli,
          .gradients = {{"b", 4'000'000, 15 * kMilli}, {"a", 4'000'000, 20 * kMilli}},
          .computations = {20 * kMilli},
          .exchanges = {}};
}

Setting on(int ranks, std::size_t bucket = 4'000'000) {
  Setting setting;
  setting.cluster = {.ranks = ranks, .inside = {}, .between = {.per_byte = 1e-9}};
  setting.bucket = bucket;
  return setting;
}

/// A trace of two ranks: of `steps` steps of 100 us, whose times are `slower` times as long.
std::string trace(int steps, const std::string& device = "opencl:0") {
  std::string text = R"({"traceEvents":[{"ph":"M","name":"thread_name","tid":1,"args":{"name":")" + device +
                     R"( kernels"}},{"ph":"M","name":"thread_name","tid":2,"args":{"name":"exchange"}})";
  const auto add = [&](int track, double begin, double length, const std::string& name, const std::string& arguments) {
    text += fmt::format(R"(,{{"ph":"X","tid":{},"ts":{},"dur":{},"name":"{}","args":{{{}}}}})", track, begin, length,
                        name, arguments);
  };
  for (int i = 0; i < steps; ++i) {
    const double at = 100.0 * i;
    add(1, at, 20, "conv", R"("begins":"before exchange","pass":"forward")");
    add(1, at + 5, 5, "a part of conv", "");
    add(1, at + 20, 10, "grad b", R"("pass":"gradient","gradient b":400)");
    add(1, at + 30, 20, "grad a", R"("pass":"gradient","gradient a":800)");
    add(2, at + 50, 30.0 + i, "sum over ranks", R"("bytes":1200,"ranks":2)");
    add(1, at + 85, 5, "update", R"("begins":"after exchange","pass":"update")");
    add(1, at + 91, 1, "count", R"("pass":"update")");
  }
  return text + "]}";
}

}  // namespace

TEST_CASE("a step of 1, 2 and 3 ranks", "[plan]") {
  Planner planner(step());
  const plan::Prediction one = planner.predict(on(1));
  CHECK(one.step == Approx(23 * kMilli));
  CHECK(one.efficiency() == 1);
  CHECK(one.limit == "computation");
  // A bucket takes 2 · 2 MB at 1 GB/s: the first beside the backward pass, from 15 to 19 ms, the second after it.
  const plan::Prediction two = planner.predict(on(2));
  CHECK(two.buckets == 2);
  CHECK(two.exchange == Approx(8 * kMilli));
  CHECK(two.exposed == Approx(4 * kMilli));
  CHECK(two.step == Approx(27 * kMilli));
  CHECK(two.efficiency() == Approx(23.0 / 27));
  CHECK(two.limit == "bandwidth between machines");
  // 2 · 2 parts of 333,334 numbers; the second bucket waits for the first, until 20.33 ms.
  const double bucket = 4 * 333'334 * 4 * 1e-9;
  CHECK(planner.predict(on(3)).step == Approx(15 * kMilli + 2 * bucket + 3 * kMilli));
}

TEST_CASE("buckets, overlap and accumulation", "[plan]") {
  Planner planner(step());
  CHECK(planner.predict(on(2, 8'000'000)).step == Approx(31 * kMilli));  // begins at the end of the backward pass
  CHECK(planner.best_bucket(on(2)).second.step == Approx(27 * kMilli));
  Setting setting = on(2);
  setting.accumulate = 2;  // 20 ms more of computation
  CHECK(planner.predict(setting).single == Approx(43 * kMilli));
  CHECK(planner.predict(setting).step == Approx(47 * kMilli));
  Setting afterwards = on(2);
  afterwards.is_overlapped = false;
  CHECK(planner.predict(afterwards).step == Approx(31 * kMilli));
  // By default as a training does it: 32 MiB on one machine, 4 MiB on several.
  CHECK(planner.predict(on(2, 0)).buckets == 2);
  Setting inside = on(2, 0);
  inside.cluster.per_machine = 2;
  CHECK(planner.predict(inside).buckets == 1);
  Setting slow = on(2);
  slow.cluster.between.latency = 1 * kMilli;  // twice for each bucket, and the second waits for the first
  CHECK(planner.predict(slow).step == Approx(30 * kMilli));
  slow.cluster.between = {.latency = 9 * kMilli};
  CHECK(planner.predict(slow).limit == "latency between machines");
  CHECK(planner.best_bucket(slow).first == std::size_t{8} << 20);
}

TEST_CASE("exchanges slow the computation beside them down", "[plan]") {
  Planner planner(step());
  Setting setting = on(2);
  setting.slowdown = 0.25;
  // From 15 ms on, 4 ms of exchange beside 3.2 of computation; the backward pass ends 1 ms later for its last 1.8 ms,
  // at 20.8 ms, and the second exchange begins.
  CHECK(planner.predict(setting).step == Approx((20.8 + 4 + 3) * kMilli));
  CHECK(planner.slowdown_of(on(2), 27.8 * kMilli) == Approx(0.25));
  CHECK(planner.slowdown_of(on(2), 26 * kMilli) == 0);
  CHECK_THROWS_AS(planner.slowdown_of(on(2), 1), ArgumentError);
  setting.cluster.ranks = 1;
  CHECK(planner.predict(setting).step == Approx(23 * kMilli));
  // An exchange that outlasts the computation slows all of it: the last 5 ms take 7.5.
  Setting slow = on(2);
  slow.cluster.between.per_byte = 4e-9;
  slow.slowdown = 0.5;
  CHECK(planner.predict(slow).step == Approx((15 + 32 + 3) * kMilli));
  CHECK(planner.predict(slow).exposed == Approx((15 + 32 - 22.5) * kMilli));
}

TEST_CASE("ranks wait for the slowest", "[plan]") {
  const std::vector<double> times{3, 1, 2};
  CHECK(plan::expected_delay(times, 1) == Approx(0).margin(1e-12));
  CHECK(plan::expected_delay(times, 2) == Approx(22.0 / 9 - 2));
  CHECK(plan::expected_delay(times, 10'000) == Approx(1));
  CHECK(plan::expected_largest(1) == 0);
  CHECK(plan::expected_largest(2) == Approx(0.5642).margin(0.03));  // 1 / sqrt(pi)
  CHECK(plan::expected_largest(100) == Approx(2.5076).margin(0.01));
  CHECK(plan::expected_largest(10'000) == Approx(3.8516).margin(0.02));
  RecordedStep uneven = step();
  uneven.computations = {20 * kMilli, 20 * kMilli, 26 * kMilli};
  Setting free = on(2);
  free.cluster.between.per_byte = 0;
  // Of two draws, one is 26 ms with probability 5/9.
  const plan::Prediction two = Planner(uneven).predict(free);
  CHECK(two.waiting == Approx(6 * kMilli * 5 / 9));
  CHECK(two.step == Approx((23 + 6.0 * 5 / 9) * kMilli));
  CHECK(two.limit == "the slowest rank");
  free.deviation = 0.1;
  CHECK(Planner(uneven).predict(free).waiting == Approx(2 * kMilli * plan::expected_largest(2)));
}

TEST_CASE("10,000 ranks take seconds", "[plan]") {
  Setting setting = on(10'000);
  setting.cluster.per_machine = 8;
  setting.cluster.inside = {.latency = 5e-6, .per_byte = 1 / 300e9};
  setting.cluster.between = {.latency = 5e-6, .gap = 1e-7, .per_byte = 1 / 50e9};
  Planner planner(step());
  const plan::Prediction many = planner.predict(setting);
  CHECK(many.step > 23 * kMilli);
  CHECK(many.limit == "messages between machines");
}

TEST_CASE("a step is read from a trace", "[plan]") {
  const RecordedStep read = plan::read_trace(trace(4), "run.json");
  CHECK(read.device == "opencl:0");
  CHECK(read.ranks == 2);
  CHECK(read.steps == 3);  // but for the first
  CHECK(read.forward == Approx(20e-6));
  CHECK(read.backward == Approx(30e-6));
  CHECK(read.update == Approx(7e-6));
  CHECK(read.idle == Approx(8e-6));
  REQUIRE(read.gradients.size() == 2);
  CHECK((read.gradients[0].parameter == "b" && read.gradients[0].bytes == 400));
  CHECK(read.gradients[0].ready == Approx(30e-6));
  CHECK((read.gradients[1].parameter == "a" && read.gradients[1].bytes == 800));
  CHECK(read.gradients[1].ready == Approx(50e-6));
  CHECK(read.computations.size() == 3);
  REQUIRE(read.exchanges.size() == 1);
  CHECK((read.exchanges[0].bytes == 1200 && read.exchanges[0].ranks == 2));
  CHECK(read.exchanges[0].seconds == Approx(30e-6));  // the shortest
  CHECK(plan::read_trace(trace(2, "cpu"), "run.json").device == "cpu");
  const RecordedStep scaled = read.scaled(2);
  CHECK(scaled.seconds() == Approx(130e-6));
  CHECK(scaled.gradients[0].ready == Approx(60e-6));
}

TEST_CASE("traces that are refused", "[plan]") {
  const auto failure = [](const std::string& text) {
    return message_of<FormatError>([&] { static_cast<void>(plan::read_trace(text, "run.json")); });
  };
  CHECK(contains(failure("{"), "run.json, byte 1: is not JSON"));
  CHECK(contains(failure("{}"), "run.json"));
  CHECK(contains(failure(R"({"traceEvents":[]})"), "no training step"));
  CHECK(contains(failure(R"({"traceEvents":[{"name":"thread_name","ph":"M"}]})"), "run.json"));
  // A step that began before the recording, without gradients.
  CHECK(contains(failure(R"({"traceEvents":[{"name":"thread_name","ph":"M","tid":1,"args":{"name":"cpu kernels"}},
      {"ph":"X","tid":1,"ts":0,"dur":1,"name":"x","args":{"pass":"update"}}]})"),
                 "no training step"));
}

}  // namespace concord::test
