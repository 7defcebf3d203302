// Whole networks of the zoo against PyTorch, on every device: outputs, loss, the norm of every gradient, and the loss
// of three more steps. tests/goldens/zoo.py recorded them in double precision. The larger ones stand under the
// hidden tag [.slow]; scripts/test --all runs these too.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "concord/core/philox.hpp"
#include "goldens.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr std::uint64_t kSeed = 7;  // of the weights

/// One or two of each form that take a few seconds on every device. Together they are to stay below a minute and a
/// half.
constexpr std::string_view kOrdinary[] = {"mlp",
                                          "lenet",
                                          "resnet20",
                                          "resnet18",
                                          "resnet50",
                                          "densenet121",
                                          "squeezenet1_1",
                                          "mobilenet_v2",
                                          "shufflenet_v2_x1_0",
                                          "unet",
                                          "denoising_autoencoder",
                                          "dcgan_generator",
                                          "dcgan_discriminator",
                                          "char_lstm",
                                          "char_gru",
                                          "gpt_tiny"};

/// First values as the script draws them, whatever the network's own are.
void set_first_values(Graph& graph) {
  for (const VariablePtr& variable : graph.variables()) {
    if (!variable->trainable) continue;
    const Shape& shape = variable->spec.shape;
    if (shape.rank() > 1) {
      const auto fan = static_cast<double>(shape.elements() / shape[0]);
      variable->init = nn::init::uniform(-std::sqrt(6 / fan), std::sqrt(6 / fan));
    } else {
      const bool scale = variable->name.ends_with("weight");
      variable->init = scale ? nn::init::uniform(0.5, 1.5) : nn::init::uniform(-0.1, 0.1);
    }
  }
}

/// first, first + factor, first + 2·factor, …, each begun again at `first` after `classes` numbers.
Tensor counted(const TensorSpec& spec, std::size_t factor, std::size_t classes, std::size_t first = 0) {
  Tensor tensor(spec);
  const auto values = tensor.values<std::int32_t>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(first + i * factor % classes);
  return tensor;
}

Tensor golden_input(const TensorSpec& spec, const nlohmann::json& recorded) {
  if (spec.dtype == DType::i32) return counted(spec, 7, recorded.at("classes").get<std::size_t>());
  const Philox random(recorded.at("seed").get<std::uint64_t>(), philox_purpose("golden.input"));
  Tensor tensor(spec);
  const auto values = tensor.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = -1.0F + 2.0F * (static_cast<float>(random.word(i) >> 8) * 0x1p-24F);
  }
  return tensor;
}

Tensor golden_target(models::Task task, const TensorSpec& spec, const Tensor& input, const nlohmann::json& recorded) {
  const auto classes = recorded.at("classes").get<std::size_t>();
  if (task == models::Task::transcription) return counted(spec, 1, classes - 1, 1);
  if (spec.dtype == DType::i32) return counted(spec, 1, classes);
  if (task == models::Task::reconstruction && input.spec() == spec) return input;
  Tensor target(spec);
  const auto values = target.values<float>();
  if (task != models::Task::policy_value) {
    std::ranges::fill(values, 0.5F);
    return target;
  }
  const auto width = static_cast<std::size_t>(spec.shape[1]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(spec.shape[0]); ++i) {
    values[i * width + i] = values[i * width + i + 1] = 0.5F;
    values[(i + 1) * width - 1] = 0.25F;
  }
  return target;
}

/// As recorded: sixteen values spread over the outputs.
std::vector<float> thinned(const Tensor& tensor) {
  constexpr std::size_t kKept = 16;
  const auto values = tensor.values<float>();
  const std::size_t step = std::max<std::size_t>(1, values.size() / kKept);
  std::vector<float> kept;
  for (std::size_t i = 0; i < values.size() && kept.size() < kKept; i += step) kept.push_back(values[i]);
  return kept;
}

double norm_of(const Tensor& tensor) {
  double squares = 0;
  for (const float value : tensor.values<float>()) squares += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(squares);
}

void check_network(const models::Model& model, const nlohmann::json& recorded, const DevicePtr& device) {
  INFO(model.name << " on " << device->info().id);
  const Shape sample(recorded.at("input").get<std::vector<std::int64_t>>());
  const auto network =
      models::make(model.name, {.classes = recorded.at("classes").get<int>(), .dropout = false, .input = sample});
  Graph graph;
  const Value x = graph.input("x", models::batch_of(model, sample, recorded.at("batch").get<std::int64_t>()));
  const Value outputs = (*network)(x);
  const Value t = graph.input("t", models::target_of(model.task, outputs.shape()));
  const Value loss = models::loss_of(model.task)(outputs, t);
  set_first_values(graph);
  std::vector<Value> weights;
  for (const VariablePtr& variable : graph.variables()) {
    if (variable->trainable) weights.push_back(graph.variable(variable));
  }
  std::vector<Value> results = gradient(loss, weights);
  const std::vector<Value> gradients = results;
  results.insert(results.end(), {outputs, loss});
  optim::minimize(loss, optim::Sgd{.lr = recorded.at("rate").get<double>()});
  Program program = compile(graph, results, std::make_shared<Variables>(device, kSeed));
  const Tensor input = golden_input(x.spec(), recorded);
  program.write("x", input);
  program.write("t", golden_target(model.task, t.spec(), input, recorded));

  program.run();
  // Where rectifiers and maxima lie close to falling out the other way, single precision changes gradients in PyTorch,
  // too.
  const double tolerance = std::min(0.05, 2e-3 + 100 * recorded.at("condition").get<double>());
  CHECK(difference(thinned(program.read(outputs)), recorded.at("outputs").get<std::vector<float>>()) < tolerance);
  double largest = 0;
  for (const auto& [name, norm] : recorded.at("gradients").items()) largest = std::max(largest, norm.get<double>());
  REQUIRE(recorded.at("gradients").size() == weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    INFO("gradient of " << weights[i].name());
    const double expected = recorded.at("gradients").at(weights[i].name()).get<double>();
    CHECK(std::abs(norm_of(program.read(gradients[i])) - expected) <= tolerance * (expected + 1e-3 * largest));
  }
  const auto losses = recorded.at("losses").get<std::vector<double>>();
  for (std::size_t step = 0; step < losses.size(); ++step) {
    INFO("loss after " << step << " steps");
    if (step > 0) program.run();
    CHECK(program.read(loss).values<float>()[0] == Approx(losses[step]).epsilon(tolerance));
  }
}

void check_on_all(const models::Model& model, const nlohmann::json& recorded) {
  for (const DevicePtr& device : devices()) check_network(model, recorded.at(std::string(model.name)), device);
}

}  // namespace

TEST_CASE("networks of the zoo train as PyTorch's", "[models]") {
  const nlohmann::json recorded = golden("zoo.json");
  for (const std::string_view name : kOrdinary) {
    DYNAMIC_SECTION(name) { check_on_all(models::find(name), recorded); }
  }
}

TEST_CASE("the large networks of the zoo train as PyTorch's", "[.slow]") {
  const nlohmann::json recorded = golden("zoo.json");
  for (const models::Model& model : models::all()) {
    if (std::ranges::find(kOrdinary, model.name) != std::end(kOrdinary)) continue;
    DYNAMIC_SECTION(model.name) { check_on_all(model, recorded); }
  }
}
