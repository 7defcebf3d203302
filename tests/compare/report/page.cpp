// The page of a comparison and the JSON of its operators, on results made by hand: all is on the page, nothing is
// loaded from elsewhere, names cannot break it.
#include <cmath>
#include <nlohmann/json.hpp>

#include "concord/compare/compare.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

Deviation deviation(const std::string& node, double error, Form form = Form::alone) {
  return {.node = node,
          .op = "conv2d",
          .kernel = "gemm 64x64",
          .value = node,
          .shapes = "f32 [1, 2] -> f32 [3]",
          .error = error,
          .tolerance = 1e-3,
          .step = 2,
          .form = form,
          .largest_relative = error / 5,
          .largest_ulps = error * 1e6,
          .worst_element = error == 0 ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{1, 5}};
}

DeviceRun run_of(const std::string& id, const std::string& name, std::vector<float> losses) {
  DeviceRun run;
  run.device.id = id;
  run.device.name = name;
  run.losses = std::move(losses);
  run.checked_values = 17;
  run.times = {{"conv2d+relu", "gemm 64x64", "", "", 2, 2e-3, {4e6, 1e6}, 1e-3},
               {"copy", "copy", "", "", 1, 1e-3, {0, 1e6}, 1e-4}};
  run.speed =
      DeviceSpeed{.bytes_per_second = 1e10, .flops_per_second = 4e10, .product_size = 512, .launch_seconds = 5e-6};
  return run;
}

Comparison comparison() {
  Comparison result{"lenet", {.steps = 2, .batch = 64, .seed = 7, .drift = true, .speed = true}, {}};
  result.runs = {run_of("cpu", "A processor", {2.5F, 2.25F}), run_of("opencl:0", "A <graphics> card", {2.5F, 2.125F})};
  result.runs[0].operators = {deviation("conv1/conv2d", 0, Form::fused)};
  result.runs[1].operators = {deviation("conv1/conv2d", 5e-4), deviation("conv2/conv2d", 0)};
  result.runs[1].weight_distances = {{1, 1e-7}, {2, 3e-7}};
  result.perturbed = {{{2.5F, 2.25F}, 1e-7, {{1, 1e-7}, {2, 2e-7}}}, {{2.5F, 2.25F}, 2e-7, {{1, 1e-7}, {2, 2.5e-7}}}};
  return result;
}

}  // namespace

TEST_CASE("errors are told as a share of the tolerance", "[compare]") {
  const Deviation d = deviation("x", 5e-4);
  CHECK(d.share() == Approx(0.5));
  CHECK_FALSE(d.diverges());
  CHECK(deviation("x", 0).share() == 0);
  CHECK(deviation("x", NAN).diverges());
  Deviation exact = deviation("x", 1);
  exact.tolerance = 0;
  CHECK(exact.share() == INFINITY);
  CHECK(exact.diverges());
}

TEST_CASE("the page has every part and loads nothing", "[compare]") {
  const std::string page = comparison().html();
  CHECK_THAT(page, contains("<!DOCTYPE html>") && contains("lenet on 2 devices") && contains("The devices agree"));
  for (const char* const part : {"Devices", "Loss", "Drift", "Errors by operator", "Time by operator", "Roofline"}) {
    INFO(part);
    CHECK_THAT(page, contains("<h2>" + std::string(part) + "</h2>"));
  }
  CHECK_THAT(page, contains("prefers-color-scheme: dark") && contains("width=device-width"));
  CHECK_THAT(page, !contains("http") && !contains("<script") && !contains("src=") && !contains("@import") &&
                       !contains("url("));
  CHECK_THAT(page, contains("A &lt;graphics&gt; card") && !contains("<graphics>"));
}

TEST_CASE("the heat table shows how far errors are into their tolerance", "[compare]") {
  Comparison result = comparison();
  CHECK_THAT(result.html(), contains("<td class=\"h2\"") && contains(">0.5<small>0.0001 · 500 ULP</small></td>") &&
                                contains("error 0.0005, tolerance 0.001; largest relative error of an element 0.0001, "
                                         "500 ULP at [1, 5]; after 2 steps") &&
                                contains("class=\"soft\">reference</td>") && contains(">equal</td>") &&
                                contains("conv1/<wbr>conv2d") && !contains("<td class=\"h4\""));
  result.runs[1].operators.push_back(deviation("conv3/conv2d", 0.5));
  result.runs[1].first_deviation = result.runs[1].operators.back();
  CHECK_THAT(result.html(), contains("<td class=\"h4\"") && contains("✗ 500") && contains("The devices do not agree") &&
                                contains("<code>conv3/conv2d</code>"));
}

TEST_CASE("the page tells times, rooflines and what a ULP does", "[compare]") {
  const std::string page = comparison().html();
  CHECK_THAT(page, contains("2 ms<small>50% · 2×</small>"));  // of conv2d+relu, whose row is conv2d
  CHECK_THAT(page, contains("40 GFLOP/s") && contains("10 GB/s"));
  CHECK_THAT(page, contains("conv2d+relu (gemm 64x64) on cpu: 4 FLOP/byte, 2 GFLOP/s, 66.7% of the time"));
  CHECK_THAT(page, !contains("<title>copy"));  // no arithmetic
  CHECK_THAT(page, contains("line noise dashed") && contains("cpu from weights moved by one ULP"));
  Comparison plain = comparison();
  plain.options.drift = plain.options.speed = false;
  CHECK_THAT(plain.html(), !contains("<h2>Drift") && !contains("<h2>Roofline") && !contains("<h2>Time"));
}

TEST_CASE("losses that are not finite leave the page whole", "[compare]") {
  Comparison result = comparison();
  for (DeviceRun& run : result.runs) run.losses = {NAN, INFINITY};
  CHECK_THAT(result.html(), contains("Reason: the loss of step 1 on cpu is not finite.") && contains("</html>") &&
                                contains("Nothing to draw: the loss is zero or not finite at every step."));
  for (DeviceRun& run : result.runs) run.losses = {0.5, 0.25};
  Comparison unchecked = result;
  unchecked.runs[1].checked_values = 0;
  CHECK_THAT(unchecked.html(), contains("Reason: no operator of opencl:0 was checked."));
  Comparison again = result;
  again.runs[1].rerun_check = {.loss = {.step = 2, .deviation = 0.5, .explained = 1e-7}, .checked_steps = 2};
  CHECK_THAT(again.html(),
             contains("<p>opencl:0: the loss of step 2 deviates by 5.00e-01 (from weights moved by one ULP: 1.00e-07); "
                      "2 of its steps were run again and checked on its own values: all are correct.</p>"));
  again.runs[1].rerun_check->mismatch = Mismatch::one_by_one;
  again.runs[1].rerun_check->mismatch_step = 1;
  CHECK_FALSE(again.agrees());
  CHECK_THAT(again.html(),
             contains("Reason: step 1 on opencl:0, run again, differs from its kernels run one by one.") &&
                 contains("were run again and checked on its own values.</p>"));
  result.perturbed.clear();
  CHECK_THAT(result.html(), contains("Nothing to draw: the largest difference so far is zero at every step."));
}

TEST_CASE("the JSON of operators has errors, times, ceilings and drift", "[compare]") {
  const auto json = nlohmann::json::parse(comparison().json(JsonDetail::operators));
  const auto& device = json["devices"][1];
  REQUIRE(device["operators"].size() == 2);
  const auto& first = device["operators"][0];
  CHECK(first["node"] == "conv1/conv2d");
  CHECK(first["share_of_tolerance"] == Approx(0.5));
  CHECK(first["largest_relative"] == Approx(1e-4));
  CHECK(first["largest_ulps"] == Approx(500));
  CHECK(first["worst_element"] == nlohmann::json({1, 5}));
  CHECK(first["fused"] == false);
  CHECK(device["times"][0]["microseconds"] == Approx(2000));
  CHECK(device["times"][0]["roofline"] == Approx(0.5));
  CHECK(device["ceilings"]["flops_per_second"] == 4e10);
  CHECK(device["weight_distances"] ==
        nlohmann::json::parse(R"([{"step": 1, "distance": 1e-7}, {"step": 2, "distance": 3e-7}])"));
  CHECK(json["perturbed"].size() == 2);
  CHECK(json["perturbed"][1]["largest_loss_deviation"] == 2e-7);
  const auto brief = nlohmann::json::parse(comparison().json());
  CHECK_FALSE(brief["devices"][1].contains("operators"));
}

TEST_CASE("the table tells the drift beside what a ULP does", "[compare]") {
  Comparison result = comparison();
  result.runs[1].largest_loss_deviation = 0.0556;
  CHECK_THAT(result.table(),
             contains("drift of opencl:0: distance of the weights 3.00e-07, largest loss deviation 5.56e-02\n") &&
                 contains("drift of cpu from weights moved by one ULP: distance of the weights 2.00e-07, largest loss "
                          "deviation 1.00e-07\n") &&
                 contains("distance of the weights 2.50e-07, largest loss deviation 2.00e-07\n"));
}

TEST_CASE("page and JSON tell the cost of the checks and the energy of a step", "[compare]") {
  Comparison result = comparison();
  result.runs[0].median_ms = 1;
  result.runs[1].median_ms = 5;
  CHECK_THAT(result.html(), contains("not reported") && !contains("a step of the slowest device"));
  result.check_cost = {{0.010, 0.010}, {0.011, 0.011, 0.011}, 1.5};
  result.runs[1].joules_a_step = 0.125;
  result.runs[1].energy_source = "GPU, NVML";
  const std::string page = result.html();
  CHECK_THAT(page,
             contains("Checks of every operator, unfused and fused: 2, 10 ms each, 2.0 times a step of the slowest"));
  CHECK_THAT(page, contains("Checked steps of all devices together: 3, 11 ms each, 2.2 times a step of the slowest"));
  CHECK_THAT(page, contains("0.125 J per step (GPU, NVML)"));
  CHECK_THAT(result.table(), contains("J/step") && contains(" 0.125 "));
  const auto devices = nlohmann::json::parse(result.json()).at("devices");
  CHECK(devices[0].at("joules_a_step").is_null());
  CHECK(devices[1].at("joules_a_step") == 0.125);
  CHECK(devices[1].at("energy_source") == "GPU, NVML");
}

}  // namespace concord::test
