// The page of a comparison and its JSON carry the same facts: each has a row here, and whatever has none fails.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "concord/compare/compare.hpp"
#include "concord/core/version.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

struct Fact {
  std::string key;   // of the JSON
  std::string name;  // on the page, where it has one
  nlohmann::json value;
  std::string text;  // on the page
};

const std::vector<Fact>& device_facts() {
  static const std::vector<Fact> facts{
      {"device", "", "opencl:3", "opencl:3"},
      {"name", "", "Card 17", "Card 17"},
      {"vendor", "vendor", "A vendor", "A vendor"},
      {"kind", "kind", "accelerator", "accelerator"},
      {"platform", "platform", "A platform", "A platform"},
      {"driver", "driver", "45.6 of a driver", "45.6 of a driver"},
      {"compute_units", "compute units", 131, "131"},
      {"device_memory_bytes", "device memory", 7ULL << 30U, "7.0 GiB"},
      {"memory_bytes", "memory used", 11 << 20, "11.0 MiB"},
      {"first_step_ms", "first step", 2340, "2.34 s"},
      {"step_ms", "step", {{"median", 1.251}, {"min", 1.062}, {"max", 2.073}}, "1.251 ms (1.062 to 2.073)"},
      {"samples_per_second", "samples", 5120, "5120 per second"},
      {"joules_a_step", "energy", 0.125, "0.125 J per step"},
      {"energy_source", "energy", "a counter", "(a counter)"},
      {"largest_loss_deviation", "largest loss deviation", 0.25, "0.25 at"},
      {"largest_loss_deviation_at_step", "largest loss deviation", 2, "at step 2"},
      {"checked_values", "values checked", 1789, "1789"},
      {"losses", "last loss", {2.5, 2.125}, "2.125000"},
      {"first_deviation", "first diverging operator", nullptr, "fc/matmul"},  // by its own facts
      {"rerun_check",
       "",
       {{"step", 2},
        {"loss_deviation", 0.25},
        {"perturbed_loss_deviation", 1e-7},
        {"checked_steps", 2},
        {"mismatch", nullptr},
        {"non_finite", nullptr}},
       "the loss of step 2 deviates by 2.50e-01 (from weights moved by one ULP: 1.00e-07); 2 of its steps"},
      {"no_float64_reference", "", {"odd_operator"}, "<code>odd_operator</code>"},
      {"ceilings",
       "matrix multiplications",
       {{"bytes_per_second", 1.2e10}, {"flops_per_second", 4.1e10}, {"launch_seconds", 5.5e-6}},
       "41 GFLOP/s"},
      {"ceilings", "bandwidth", nullptr, "12 GB/s"},
      {"ceilings", "launch overhead", nullptr, "5.5 µs"},
      // Charts and tables, of which page.cpp has the tests.
      {"weight_distances", "", nullptr, "<h3>Weights</h3>"},
      {"operators", "", nullptr, "<h2>Errors by operator</h2>"},
      {"times", "", nullptr, "<h2>Time by operator</h2>"},
  };
  return facts;
}

const std::vector<Fact>& deviation_facts() {
  static const std::vector<Fact> facts{
      {"node", "", "fc/matmul", "<code>fc/matmul</code>"},
      {"operator", "", "matmul+relu", "<code>matmul+relu</code>"},
      {"kernel", "", "tiled 64", "<code>tiled 64</code>"},
      {"fused", "", true, " fused "},
      {"value", "", "fc/relu", "<code>fc/relu</code>"},
      {"shapes", "", "f32 [8, 4]", "<code>f32 [8, 4]</code>"},
      {"pass", "", "update", "(update)"},
      {"error", "", 0.5, "error 0.5,"},
      {"tolerance", "", 0.0625, "tolerance 0.062 "},
      {"share_of_tolerance", "", 8, "(8 times as much)"},
      {"largest_relative", "", 0.75, "largest relative error of an element 0.75,"},
      {"largest_ulps", "", 96, "96 ULP"},
      {"worst_element", "", {7, 3}, "at [7, 3]"},
      {"after_steps", "", 41, "after 41 steps"},
  };
  return facts;
}

Comparison comparison() {
  DeviceRun run;
  run.device = {.id = "opencl:3",
                .backend = "opencl",
                .name = "Card 17",
                .vendor = "A vendor",
                .platform = "A platform",
                .driver = "45.6 of a driver",
                .kind = DeviceKind::accelerator,
                .memory = 7ULL << 30U,
                .compute_units = 131,
                .precisions = {},
                .pci_address = {}};
  run.losses = {2.5F, 2.125F};
  run.first_step_ms = 2340;
  run.median_ms = 1.251;
  run.min_ms = 1.062;
  run.max_ms = 2.073;
  run.samples_per_second = 5120;
  run.joules_a_step = 0.125;
  run.energy_source = "a counter";
  run.memory_bytes = 11 << 20;
  run.largest_loss_deviation = 0.25;
  run.largest_at_step = 2;
  run.checked_values = 1789;
  run.first_deviation =
      Deviation{"fc/matmul", "matmul+relu", "tiled 64", "fc/relu", "f32 [8, 4]", Pass::update, 0.5, 0.0625,
                41,          Form::fused,   0.75,       96,        {7, 3}};
  run.rerun_check = RerunCheck{.loss = {.step = 2, .deviation = 0.25, .explained = 1e-7}, .checked_steps = 2};
  run.operators = {*run.first_deviation};
  run.weight_distances = {{1, 1e-7}};
  run.times = {{"matmul", "tiled 64", "", "", 2, 2e-3, {4e6, 1e6}, 1e-3}};
  run.speed = DeviceSpeed{.bytes_per_second = 1.2e10, .flops_per_second = 4.1e10, .launch_seconds = 5.5e-6};
  Comparison result{"lenet", {.steps = 2, .batch = 61, .seed = 77, .drift = true, .speed = true}, {}};
  result.runs = {run, run};
  result.runs[0].unreferenced = result.runs[1].unreferenced = {"odd_operator"};
  result.check_cost = {{0.012}, {0.034}, 5.6};
  return result;
}

/// `element` holds the facts and no others; the page has their texts.
void check_facts(const nlohmann::json& element, const std::string& page, const std::vector<Fact>& facts) {
  for (const Fact& fact : facts) {
    INFO(fact.key);
    REQUIRE(element.contains(fact.key));
    if (!fact.value.is_null()) CHECK(element.at(fact.key) == fact.value);
    CHECK_THAT(page, contains(fact.text));
  }
  for (const auto& [key, value] : element.items()) {
    INFO(key << " is in the JSON: where is it on the page?");
    CHECK(std::ranges::find(facts, key, &Fact::key) != facts.end());
  }
}

}  // namespace

TEST_CASE("page and JSON carry the same facts of devices and deviations", "[compare]") {
  const std::string page = comparison().html();
  const auto json = nlohmann::json::parse(comparison().json(JsonDetail::operators));
  const auto& device = json.at("devices")[1];
  check_facts(device, page, device_facts());
  check_facts(device.at("first_deviation"), page, deviation_facts());
  CHECK(device.at("operators")[0] == device.at("first_deviation"));
  const std::regex name("<dt>([^<]*)</dt>");
  for (auto at = std::sregex_iterator(page.begin(), page.end(), name); at != std::sregex_iterator(); ++at) {
    INFO((*at)[1] << " is on the page: where is it in the JSON?");
    CHECK(std::ranges::find(device_facts(), (*at)[1].str(), &Fact::name) != device_facts().end());
  }
}

TEST_CASE("page and JSON carry the same facts of a comparison", "[compare]") {
  Comparison result = comparison();
  for (DeviceRun& run : result.runs) run.first_deviation.reset();
  result.runs[1].checked_values = 0;
  result.perturbed = {{{2.5F, 2.25F}, 1e-7, {{1, 1e-7}}}};
  const std::vector<Fact> facts{
      {"network", "", "lenet", "lenet on 2 devices"},
      {"steps", "", 2, "2 steps of batch 61"},
      {"batch", "", 61, "of batch 61"},
      {"seed", "", 77, "seed 77"},
      {"precision", "", "fp32", "fp32"},
      {"reference", "", "device", "the reference is opencl:3"},
      {"version", "", kVersion, "Concord " + std::string(kVersion)},
      {"agrees", "", false, "The devices do not agree"},
      {"disagreement", "", result.disagreement(), result.disagreement()},
      {"checks", "", nullptr, "1, 12 ms each"},
      {"checks", "", nullptr, "1, 34 ms each"},
      {"checks", "", nullptr, "Compiling the checked programs: 5.6 s"},
      {"devices", "", nullptr, "<h2>Devices</h2>"},
      {"perturbed", "", nullptr, "opencl:3 from weights moved by one ULP"},
  };
  const auto json = nlohmann::json::parse(result.json(JsonDetail::operators));
  check_facts(json, result.html(), facts);
  CHECK_FALSE(result.disagreement().empty());
}

}  // namespace concord::test
