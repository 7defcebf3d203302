// concord plan: how fast a training would be on many ranks, from a recorded step and the links between the ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "concord/cli/options.hpp"
#include "concord/cli/plan_measure.hpp"
#include "concord/cli/plan_report.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"

namespace concord::cli {
namespace {

struct PlanArguments {
  std::string network, trace, link, inside, measure;
  RanksOptions measured;  // ranks of --measure
  int ranks = 0;
  int per_machine = 1;
  std::string algorithm = "direct", bucket;
  bool is_afterwards = false;
  int accumulate = 1;
  double step_ms = 0;
  std::string known_step;
  double deviation = -1;  // below 0: as recorded
  bool json = false;
};

/// Throws ArgumentError if the trace is that of another network.
void require_gradients_of(const models::Model& model, const plan::RecordedStep& step, const std::string& file) {
  const auto network = make_network(model, {});
  const train::Source source = source_of(model, *network, published_sample(model));
  Graph graph;
  static_cast<void>((*network)(train::add_inputs(graph, source, 1).features));
  const std::vector<VariablePtr> variables = graph.variables();
  for (const plan::Gradient& gradient : step.gradients) {
    const bool is_known = std::ranges::any_of(variables, [&](const VariablePtr& variable) {
      const std::string& name = variable->name;
      return variable->trainable && gradient.parameter.starts_with(name) &&
             std::ranges::all_of(gradient.parameter.substr(name.size()), is_digit);  // terms of a loss have numbers
    });
    CONCORD_CHECK(is_known, ArgumentError, "{} is the trace of another network: {} has no parameter '{}'", file,
                  model.name, gradient.parameter);
  }
}

/// What --link or --inside gives: a link, or a file of measured exchanges.
KnownLink known_link(const std::string& text) {
  if (text.find('=') != std::string::npos && !std::filesystem::exists(text)) return {plan::parse_link(text), 0, {}};
  const plan::FittedLink fitted = plan::fit_link(plan::read_exchanges(concord::read_file(text), text));
  return {fitted.link, fitted.sum_per_byte, fitted.error};
}

/// From the exchanges of the recorded training.
KnownLink recorded_link(const plan::RecordedStep& step, const char* option) {
  const bool has_sizes = std::ranges::any_of(
      step.exchanges, [&](const plan::MeasuredExchange& one) { return one.bytes != step.exchanges[0].bytes; });
  CONCORD_CHECK(has_sizes, ArgumentError,
                "{} is needed: the trace has no exchanges of several sizes between ranks through the host. Give "
                "latency and bandwidth, as in {} latency=20us,bandwidth=50GB/s, or a file of `concord plan --measure`",
                option, option);
  const plan::FittedLink fitted = plan::fit_link(step.exchanges);
  return {fitted.link, fitted.sum_per_byte, fitted.error};
}

/// 1, 2, 4, … and `most`, but for those that do not fill the machines.
std::vector<int> ranks_up_to(int most, int per_machine) {
  std::vector<int> ranks;
  for (int count = 1; count < most; count *= 2) {
    if (count <= per_machine || count % per_machine == 0) ranks.push_back(count);
  }
  ranks.push_back(most);
  return ranks;
}

struct KnownStep {
  int ranks = 0;
  double seconds = 0;
};

/// "2:19.5": ranks and milliseconds.
KnownStep known_step(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto ranks = number_in_text<int>(std::string_view(text).substr(0, colon));
  const auto milliseconds =
      colon == std::string::npos ? std::nullopt : number_in_text<double>(std::string_view(text).substr(colon + 1));
  CONCORD_CHECK(ranks && milliseconds && *ranks >= 2 && std::isfinite(*milliseconds) && *milliseconds > 0,
                ArgumentError, "--known-step {}: expected ranks from 2 on and milliseconds above 0, as in 2:19.5",
                printable(text));
  return {*ranks, *milliseconds / 1e3};
}

/// Refuses what would be ignored.
void check_plan_options(const PlanArguments& options, const std::vector<CLI::Option*>& of_prediction) {
  for (const CLI::Option* const option : of_prediction) {
    CONCORD_CHECK(options.measure.empty() || option->count() == 0, ArgumentError,
                  "{}: --measure only times exchanges and writes them to its file", option->get_name());
  }
  CONCORD_CHECK(options.inside.empty() || options.per_machine > 1, ArgumentError,
                "--inside is the link between ranks of one machine: say with --machine how many it has");
}

void run_plan(const PlanArguments& options) {
  if (!options.measure.empty()) return measure_links(options.measure, options.measured);
  CONCORD_CHECK(!options.network.empty() && !options.trace.empty() && options.ranks > 0, ArgumentError,
                "plan needs a network, --trace and --ranks, or else --measure");
  const models::Model& model = find_model(options.network);
  plan::RecordedStep step = plan::read_trace(concord::read_file(options.trace), options.trace);
  require_gradients_of(model, step, options.trace);
  if (options.step_ms > 0) step = step.scaled(options.step_ms / 1e3 / step.seconds());

  plan::Setting setting;
  setting.cluster = {.ranks = options.ranks, .per_machine = options.per_machine, .inside = {}, .between = {}};
  setting.algorithm = options.algorithm == "ring" ? plan::Algorithm::ring : plan::Algorithm::direct;
  if (!options.bucket.empty()) setting.bucket = parse_bytes(options.bucket);
  setting.is_overlapped = !options.is_afterwards;
  setting.accumulate = options.accumulate;
  if (options.deviation >= 0) setting.deviation = options.deviation;
  PlanReport report{.network = std::string(model.name), .step = step, .setting = setting, .inside = {}, .between = {}};
  if (options.per_machine > 1)
    report.inside = options.inside.empty() ? recorded_link(step, "--inside") : known_link(options.inside);
  const KnownStep known = options.known_step.empty() ? KnownStep{} : known_step(options.known_step);
  if (std::max(options.ranks, known.ranks) > options.per_machine)
    report.between = options.link.empty() ? recorded_link(step, "--link") : known_link(options.link);
  for (const std::optional<KnownLink>& link : {report.inside, report.between}) {
    if (link) setting.cluster.sum_per_byte = std::max(setting.cluster.sum_per_byte, link->sum_per_byte);
  }
  if (report.inside) setting.cluster.inside = report.inside->link;
  if (report.between) setting.cluster.between = report.between->link;
  plan::Planner planner(step);
  if (known.ranks > 0) {
    plan::Setting of_known = setting;
    of_known.cluster.ranks = known.ranks;
    setting.slowdown = planner.slowdown_of(of_known, known.seconds);
  }
  report.setting = setting;

  for (const int ranks : ranks_up_to(options.ranks, options.per_machine)) {
    setting.cluster.ranks = ranks;
    report.predictions.push_back(planner.predict(setting));
  }
  std::tie(report.best_bucket, report.best) = planner.best_bucket(setting);
  if (options.json) {
    std::cout << plan_json(report).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
  } else {
    std::cout << plan_table(report);
  }
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App* command = app.add_subcommand("plan", "Predict the time of a training step on many ranks");
  const auto options = std::make_shared<PlanArguments>();
  constexpr std::uint64_t kMostRanks = 100'000;
  command->add_option("net", options->network, "The network of the trace")->check(not_empty());
  command
      ->add_option("--trace", options->trace,
                   "A trace of `train` or `bench` of this network, on one device or of one of several ranks")
      ->check(file_name());
  command->add_option("--ranks", options->ranks, "Predict for 1, 2, 4, … ranks up to this number")
      ->check(whole(1, kMostRanks));
  command
      ->add_option("--link", options->link,
                   "The link between machines: latency=20us,bandwidth=50GB/s, also with overhead and gap of a message, "
                   "or a file of --measure [fitted to the exchanges of the trace]")
      ->check(not_empty());
  command->add_option("--machine", options->per_machine, "Ranks of each machine")
      ->capture_default_str()
      ->check(whole(1, kMostRanks));
  command->add_option("--inside", options->inside, "The link between ranks of one machine, as --link")
      ->check(not_empty());
  command
      ->add_option("--algorithm", options->algorithm,
                   "How ranks sum: direct, as Concord does it, or ring, for comparison")
      ->capture_default_str()
      ->check(one_of({"direct", "ring"}));
  command
      ->add_option("--bucket", options->bucket,
                   "Bytes of gradients that are summed at once [as train: 32MiB on one machine, 4MiB on several]")
      ->check(number_of_bytes());
  command->add_option("--accumulate", options->accumulate, "Batches of each rank in an update")
      ->capture_default_str()
      ->check(whole(1, 1'000'000));
  command
      ->add_option("--step-ms", options->step_ms,
                   "Scale the recorded step to this time, such as that of another device [as recorded]")
      ->check(positive());
  command
      ->add_option("--deviation", options->deviation,
                   "Standard deviation of the computation of a step, as a part of it [as recorded]")
      ->check(from_0_to_1());
  CLI::Option* const afterwards = command->add_flag("--no-overlap", options->is_afterwards,
                                                    "Exchange after the backward pass instead of beside it");
  command
      ->add_option(
          "--known-step", options->known_step,
          "The measured step of so many ranks, as RANKS:MS: what it takes longer than predicted is put down to "
          "computation that is slower beside exchanges")
      ->excludes(afterwards);
  command->add_flag("--json", options->json, "Print JSON");
  const std::vector<CLI::Option*> of_prediction =
      command->get_options([](const CLI::Option* option) { return option->get_name() != "--help"; });
  command
      ->add_option("--measure", options->measure,
                   "Instead, time exchanges between the ranks of --devices, and write them to this file")
      ->check(file_name());
  options->measured.add(*command);
  command->callback([options, of_prediction] {
    check_plan_options(*options, of_prediction);
    run_plan(*options);
  });
}

}  // namespace concord::cli
