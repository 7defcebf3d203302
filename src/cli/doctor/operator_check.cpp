// The choice of networks, and one comparison.
#include "concord/cli/doctor/operator_check.hpp"

#include <algorithm>
#include <set>

#include "concord/cli/random_data.hpp"
#include "concord/concord.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::cli {
namespace {

constexpr std::int64_t kBatch = 2;

/// Deep Speech 2 in small: the zoo's takes most of a minute in double precision.
struct SmallSpeech : nn::Module {
  static constexpr std::int64_t kHeight = 16, kChannels = 32;
  nn::Conv2d conv{1, kChannels, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d norm{kChannels};
  nn::Linear letters;
  explicit SmallSpeech(std::int64_t classes) : letters(kChannels * kHeight, classes) {}
  Value forward(Value x) override {
    const Value steps = transpose(relu(norm(conv(x))), {0, 3, 1, 2});  // (N, T, kChannels, kHeight)
    return letters(reshape(steps, {steps.shape()[0], steps.shape()[1], -1}));
  }
  Children children() override { return {{"conv", &conv}, {"norm", &norm}, {"letters", &letters}}; }
};

const models::Model& small_speech() {
  static const models::Model model{.name = "small speech",
                                   .description = "spectrograms to letters: a convolution, CTC",
                                   .input = Shape{1, SmallSpeech::kHeight, 40},
                                   .classes = 29,
                                   .make = [](const models::Variant& variant) -> std::shared_ptr<nn::Module> {
                                     return std::make_shared<SmallSpeech>(variant.classes);
                                   },
                                   .task = models::Task::transcription};
  return model;
}

std::shared_ptr<nn::Module> least_of(const models::Model& model) {
  return model.make({.classes = model.classes, .input = model.least});
}

struct Candidate {
  const models::Model* model;
  std::set<std::string> operators;
  double seconds;  // that a check may take
};

/// Pointwise operators are one: their formulas differ, the kernel does not.
std::string family_of(const Operator& op) {
  return dynamic_cast<const ops::Pointwise*>(&op) != nullptr ? "pointwise" : std::string(op.name());
}

/// Of a node with kernels to be built, several times in double precision.
double seconds_of(const Graph& graph, std::int32_t place) {
  constexpr double kKernels = 0.1, kHostFlops = 1e8;
  const Node& node = graph.node(place);
  std::vector<TensorSpec> inputs;
  for (const Value& input : node.inputs) inputs.push_back(input.spec());
  return kKernels + node.op->cost(inputs, node.outputs).flops / kHostFlops;
}

Candidate candidate_of(const models::Model& model) {
  const std::shared_ptr<nn::Module> network = least_of(model);
  Graph graph;
  const Value output = (*network)(graph.input("features", models::batch_of(model, model.least, kBatch)));
  const Value target = graph.input("target", models::target_of(model.task, output.shape()));
  optim::minimize(models::loss_of(model.task)(output, target), optim::Sgd{}, {});
  Candidate candidate{&model, {}, 0};
  for (std::int32_t i = 0; i < graph.size(); ++i) {
    if (graph.node(i).op == nullptr) continue;
    candidate.operators.insert(family_of(*graph.node(i).op));
    candidate.seconds += seconds_of(graph, i);
  }
  return candidate;
}

}  // namespace

std::vector<OperatorCheck> operator_checks() {
  std::vector<Candidate> candidates{candidate_of(small_speech())};
  for (const models::Model& model : models::all()) candidates.push_back(candidate_of(model));
  std::vector<OperatorCheck> checks;
  while (true) {
    const auto gain = [](const Candidate& c) { return static_cast<double>(c.operators.size()) / c.seconds; };
    const auto best = std::ranges::max_element(candidates, {}, gain);
    if (best->operators.empty()) return checks;
    const std::set<std::string> covered = best->operators;
    checks.push_back({best->model, {covered.begin(), covered.end()}});
    for (Candidate& candidate : candidates) {
      std::erase_if(candidate.operators, [&](const std::string& name) { return covered.contains(name); });
    }
  }
}

Comparison check_operators(const models::Model& model, std::span<const DevicePtr> devices) {
  const Dataset data = random_data(model, model.least, kBatch, 1);
  return compare(*least_of(model), std::string(model.name), models::loss_of(model.task), optim::Sgd{}, data, devices,
                 {.steps = 1, .batch = kBatch, .seconds = 0.001, .reference = Reference::float64});
}

}  // namespace concord::cli
