// The table and the JSON of a comparison, and when devices agree, on results made by hand.
#include <cmath>
#include <nlohmann/json.hpp>

#include "concord/compare/compare.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

DeviceRun run_of(const std::string& id, const std::string& name, std::vector<float> losses) {
  DeviceRun run;
  run.device.id = id;
  run.device.name = name;
  run.device.platform = "platform of " + id;
  run.device.driver = "1.2.3";
  run.losses = std::move(losses);
  run.first_step_ms = 2500;
  run.median_ms = 1.25;
  run.min_ms = 1;
  run.max_ms = 2;
  run.samples_per_second = 51200;
  run.memory_bytes = 3 << 20;
  run.checked_values = 17;
  return run;
}

Comparison comparison() {
  Comparison result{"lenet", {.steps = 2, .batch = 64, .seed = 7}, {}};
  result.runs = {run_of("cpu", "A processor", {2.5F, 2.25F}), run_of("opencl:0", "A graphics card", {2.5F, 2.125F})};
  result.runs[1].largest_loss_deviation = 0.0556;
  result.runs[1].largest_at_step = 2;
  return result;
}

Deviation deviation() {
  return {"conv1/conv2d", "conv2d+add", "gemm 64x64", "conv1/add", "f32 [1, 2] -> f32 [3]",
          Pass::forward,  0.5,          1e-5,         100,         Form::fused,
          0.25,           4194304,      {0, 3}};
}

}  // namespace

TEST_CASE("devices agree when all were checked, none diverges and every loss is finite", "[compare]") {
  CHECK(comparison().agrees());
  const auto agrees_after = [](auto&& change) {
    Comparison changed = comparison();
    change(changed.runs);
    return changed.agrees();
  };
  CHECK_FALSE(agrees_after([](auto& runs) { runs[1].first_deviation = deviation(); }));
  CHECK_FALSE(agrees_after([](auto& runs) { runs[0].first_deviation = deviation(); }));
  CHECK_FALSE(agrees_after([](auto& runs) { runs[1].checked_values = 0; }));
  CHECK_FALSE(agrees_after([](auto& runs) { runs[1].losses[0] = NAN; }));
  CHECK_FALSE(agrees_after([](auto& runs) { runs[0].losses[1] = INFINITY; }));
  CHECK(agrees_after([](auto& runs) { runs[1].largest_loss_deviation = 0.9; }));  // rounding is amplified: no fault
}

TEST_CASE("a loss that is NaN has no sign", "[compare]") {
  Comparison result = comparison();
  result.runs[1].losses[1] = std::copysign(NAN, -1.0F);
  CHECK_THAT(result.table(), contains(" nan ") && !contains("-nan"));
  CHECK_THAT(result.html(), contains("nan") && !contains("-nan"));
}

TEST_CASE("what checks cost is told in steps of the slowest device", "[compare]") {
  Comparison result = comparison();
  result.runs[1].median_ms = 5;
  result.check_cost = {{0.008, 0.1, 0.01}, {}, 1.5};
  CHECK(result.in_slowest_steps(result.check_cost.all_seconds) == 2);
  CHECK_THAT(result.table(), contains("checks of every operator, unfused and fused: 3, 10 ms each, 2.0 times a step of "
                                      "the slowest device without checks\n"));
  CHECK_THAT(result.table(), !contains("checked steps"));
  result.check_cost.step_seconds = {0.022, 0.020, 0.5};
  CHECK_THAT(result.table(), contains("checked steps: 3, 22 ms each for all devices together, 4.4 times a step of the "
                                      "slowest device without checks\n"));
  const auto json = nlohmann::json::parse(result.json());
  CHECK(json["checks"]["all_operators"]["seconds"].size() == 3);
  CHECK(json["checks"]["checked_steps"]["in_steps_of_the_slowest_device"] == Approx(4.4));
  CHECK(json["checks"]["compile_seconds"] == 1.5);
}

TEST_CASE("the table has a row a device and a sentence a diverging operator", "[compare]") {
  Comparison result = comparison();
  const std::string agreeing = result.table();
  CHECK_THAT(agreeing, contains("lenet: 2 steps, batch 64, seed 7, fp32; reference A processor"));
  CHECK_THAT(agreeing, contains("opencl:0     A graphics card"));
  CHECK_THAT(agreeing, contains("1.250") && contains("51200") && contains("3.0 MiB") && contains("2.50 s"));
  CHECK_THAT(agreeing, contains("2.125000") && contains("5.56e-02  none"));
  CHECK_THAT(agreeing, !contains("tolerance"));
  CHECK_THAT(agreeing, contains("the devices agree: "));

  result.runs[1].first_deviation = deviation();
  CHECK_THAT(result.table(), contains("5.56e-02  conv1/conv2d\n") &&
                                 contains("opencl:0 (A graphics card): forward value 'conv1/add' of node conv1/conv2d "
                                          "exceeds its tolerance after 100 steps: error 0.5, tolerance 1e-05; largest "
                                          "relative error of an element 0.25, 4.19e+06 ULP at [0, 3]\n") &&
                                 contains("operator conv2d+add fused, kernel gemm 64x64\n") &&
                                 contains("f32 [1, 2] -> f32 [3]\n"));
  result.runs[1].first_deviation->pass = Pass::gradient;
  CHECK_THAT(result.table(), contains("gradient 'conv1/add'"));
  result.runs[1].first_deviation->pass = Pass::update;
  CHECK_THAT(result.table(), contains("updated value 'conv1/add'") && !contains("the devices agree"));

  result.runs[0].device.name = std::string(60, 'x');
  result.runs[1].device.name = std::string(60, 'x') + " of another kind";
  const std::string wide = result.table();
  CHECK_THAT(wide, contains(" " + std::string(60, 'x') + "  ") && contains(result.runs[1].device.name + "  "));
  const std::size_t header = wide.find("device "), row = wide.find("cpu ");
  REQUIRE(row != std::string::npos);
  CHECK(wide.find("ms/step") + 7 - header == wide.find('.', row) + 4 - row);  // under each other
}

TEST_CASE("the JSON has all of it, whatever the names and numbers", "[compare]") {
  Comparison result = comparison();
  const auto json = nlohmann::json::parse(result.json());
  CHECK(json["network"] == "lenet");
  CHECK(json["steps"] == 2);
  CHECK(json["batch"] == 64);
  CHECK(json["seed"] == 7);
  CHECK(json["agrees"] == true);
  REQUIRE(json["devices"].size() == 2);
  const auto& device = json["devices"][1];
  CHECK(device["device"] == "opencl:0");
  CHECK(device["name"] == "A graphics card");
  CHECK(device["platform"] == "platform of opencl:0");
  CHECK(device["driver"] == "1.2.3");
  CHECK(device["losses"] == nlohmann::json({2.5, 2.125}));
  CHECK(device["first_step_ms"] == 2500);
  CHECK(device["step_ms"] == nlohmann::json({{"median", 1.25}, {"min", 1}, {"max", 2}}));
  CHECK(device["samples_per_second"] == 51200);
  CHECK(device["memory_bytes"] == 3 << 20);
  CHECK(device["largest_loss_deviation"] == 0.0556);
  CHECK(device["largest_loss_deviation_at_step"] == 2);
  CHECK(device["checked_values"] == 17);
  CHECK(device["first_deviation"].is_null());

  result.runs[1].first_deviation = deviation();
  result.runs[1].first_deviation->error = INFINITY;
  result.runs[1].losses[1] = NAN;
  result.runs[1].device.name = "no \xff UTF-8, a \" and a \n";
  const auto odd = nlohmann::json::parse(result.json());
  CHECK(odd["agrees"] == false);
  CHECK(odd["devices"][1]["losses"][1].is_null());
  CHECK(odd["devices"][1]["first_deviation"] == nlohmann::json({{"node", "conv1/conv2d"},
                                                                {"operator", "conv2d+add"},
                                                                {"kernel", "gemm 64x64"},
                                                                {"value", "conv1/add"},
                                                                {"shapes", "f32 [1, 2] -> f32 [3]"},
                                                                {"pass", "forward"},
                                                                {"fused", true},
                                                                {"error", nullptr},
                                                                {"tolerance", 1e-5},
                                                                {"share_of_tolerance", nullptr},
                                                                {"largest_relative", 0.25},
                                                                {"largest_ulps", 4194304.0},
                                                                {"worst_element", {0, 3}},
                                                                {"after_steps", 100}}));
  CHECK_THAT(result.table(), contains("opencl:0"));
}

}  // namespace concord::test
