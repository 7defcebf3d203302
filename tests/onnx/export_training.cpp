// ONNX export of a step of training: read again by the import, it computes what the step does on every device.
#include "concord/onnx/export.hpp"
#include "concord/onnx/network.hpp"
#include "concord/onnx/wire.hpp"
#include "files.hpp"
#include "onnx/exported.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// The step in the file, imported, against that of the graph, both from the first weights of seed 3.
void check_step(const std::filesystem::path& file, const Graph& graph, Value loss, const Tensor& features,
                const Tensor& target, const DevicePtr& device) {
  Program program = compile(graph, loss, std::make_shared<Variables>(device, 3));
  program.write("input", features);
  program.write("target", target);
  program.run();
  Session session(onnx::load(file), device);
  const NamedTensors given = session.run({{"input", features}, {"target", target}});
  CHECK(difference(given.at("loss"), program.read(loss)) < 1e-5);
  for (const Assignment& assignment : graph.assignments()) {
    INFO(assignment.variable.name());
    CHECK(difference(given.at(assignment.variable.name() + ".updated"), program.read(assignment.variable)) < 1e-4);
  }
}

}  // namespace

TEST_CASE("an exported step of training gives the loss and all that changes", "[onnx][export]") {
  for (const char* name : {"mlp", "lenet", "resnet20", "char_lstm", "gpt_tiny", "unet"}) {
    const models::Model& model = models::find(name);
    const models::Variant variant{.dropout = false, .input = model.least};
    const TensorSpec input = models::batch_of(model, model.least, 4);
    const TemporaryFolder folder;
    const std::filesystem::path file = folder / "step.onnx";
    const auto network = models::make(name, variant);
    Graph graph;
    const Value prediction = (*network)(graph.input("input", input));
    const TensorSpec target = models::target_of(model.task, prediction.shape());
    const Value loss = models::loss_of(model.task)(prediction, graph.input("target", target));
    const optim::Sgd optimizer{.lr = 0.1, .momentum = 0.9};
    optim::minimize(loss, optimizer);
    onnx::save_training(file, *network, models::loss_of(model.task), optimizer,
                        {.input = input.shape, .dtype = input.dtype, .target = target, .seed = 3});
    const onnx::Model written = onnx::read_model(file);
    REQUIRE(written.training.size() == 1);
    CHECK(written.training[0].update_bindings.size() == graph.assignments().size());
    const Tensor features = random_input(input, model.classes),
                 labels = random_input(target, std::min(model.classes, 3));
    for (const DevicePtr& device : devices()) {
      INFO(name << " on " << device->info().id);
      check_step(file, graph, loss, features, labels, device);
    }
  }
}

TEST_CASE("an exported step of every optimizer gives all that changes", "[onnx][export]") {
  const auto check = [](const optim::Optimizer& optimizer) {
    const TemporaryFolder folder;
    const std::filesystem::path file = folder / "step.onnx";
    nn::Sequential network = two_layers();
    const TensorSpec input{DType::f32, {4, 6}}, target{DType::f32, {4, 3}};
    Graph graph;
    const Value loss = loss::mse(network(graph.input("input", input)), graph.input("target", target));
    const optim::MinimizeOptions minimize{
        .groups = {{.match = optim::vectors(), .optimizer = optim::AdamW{.lr = 0.01}}}};
    optim::minimize(loss, optimizer, minimize);
    onnx::save_training(file, network, loss::mse, optimizer,
                        {.input = input.shape, .target = target, .seed = 3, .minimize = minimize});
    const Tensor features = random_input(input, 0), wanted = random_input(target, 0);
    for (const DevicePtr& device : devices()) {
      INFO(optimizer.rule().name << " on " << device->info().id);
      check_step(file, graph, loss, features, wanted, device);
    }
  };
  check(optim::Muon{.lr = 0.01});  // two of its results may be one instruction
  check(optim::Adam{.lr = 0.01});
  check(optim::RMSprop{.lr = 0.01});
}

TEST_CASE("dropout and CTC are refused in an exported training", "[onnx][export]") {
  const TemporaryFolder folder;
  nn::Sequential net = two_layers();
  net.push(nn::Dropout(0.5F));
  CHECK_THROWS_WITH(onnx::save_training(folder / "x.onnx", net, loss::mse, optim::Sgd{},
                                        {.input = {2, 6}, .target = {DType::f32, {2, 3}}}),
                    contains("without dropout"));
  const models::Model& speech = models::find("deep_speech_2");
  const auto network = models::make("deep_speech_2", {.dropout = false, .input = speech.least});
  Graph graph;
  const TensorSpec input = models::batch_of(speech, speech.least, 2);
  const TensorSpec target = models::target_of(speech.task, (*network)(graph.input("x", input)).shape());
  CHECK_THROWS_WITH(onnx::save_training(folder / "x.onnx", *network, models::loss_of(speech.task), optim::Sgd{},
                                        {.input = input.shape, .target = target}),
                    contains("(ctc)"));
}
