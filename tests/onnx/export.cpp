// ONNX export: files of networks, read again by the import, compute what the network does on every device.
// tests/onnx/export_networks.py runs the same networks with onnxruntime.
#include "concord/onnx/export.hpp"

#include <algorithm>
#include <map>

#include "concord/onnx/wire.hpp"
#include "files.hpp"
#include "onnx/exported.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// Random weights where all initial values are 0, as in the head of a vision transformer: else its outputs are 0.
void give_head_weights(nn::Module& network, const TensorSpec& batch) {
  Graph graph;
  graph.set_training(false);
  static_cast<void>(network(graph.input("input", batch)));
  for (const VariablePtr& variable : graph.variables()) {
    const bool is_zero =
        variable->init.kind != Initializer::Kind::uniform && variable->init.a == 0 && variable->init.b == 0;
    if (is_zero && variable->spec.shape.rank() == 2) variable->init = nn::init::normal(0, 0.02);
  }
}

}  // namespace

TEST_CASE("exported networks compute what they did, of any batch, on the CPU bit for bit", "[onnx][export]") {
  for (const char* name : {"mlp", "lenet", "resnet20", "char_lstm", "gpt_tiny", "unet", "denoising_autoencoder"}) {
    const models::Model& model = models::find(name);
    for (const DevicePtr& device : devices()) {
      for (const bool is_free : {false, true}) {
        INFO(name << " on " << device->info().id << (is_free ? " with a free batch" : ""));
        const auto network = models::make(name, {.input = model.least});
        onnx::ExportOptions options;
        if (is_free) options.batch = "N";
        const double most = difference_of_file(network, models::batch_of(model, model.least, 5), device, options);
        CHECK(most <= (is_cpu(device) ? 0 : 1e-5));
      }
    }
  }
}

TEST_CASE("all networks are exported and imported again, on the CPU bit for bit", "[.][slow][export_all]") {
  for (const models::Model& model : models::all()) {
    const auto network = models::make(model.name, {.input = model.least});
    give_head_weights(*network, models::batch_of(model, model.least, 2));
    for (const DevicePtr& device : devices()) {
      INFO(model.name << " on " << device->info().id);
      const double most = difference_of_file(network, models::batch_of(model, model.least, 2), device, {.batch = "N"});
      CHECK(most <= (is_cpu(device) ? 0 : 1e-4));
    }
  }
}

TEST_CASE("recurrent layers are exported with the order of ONNX's gates", "[onnx][export]") {
  const TensorSpec sequence{DType::f32, {5, 3, 4}};  // (T, N, input)
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const double most = is_cpu(device) ? 0 : 3e-6;
    CHECK(difference_of_file(std::make_shared<nn::LSTM>(4, 6, nn::RecurrentOptions{.bidirectional = true}), sequence,
                             device) <= most);
    CHECK(difference_of_file(std::make_shared<nn::GRU>(4, 6, nn::RecurrentOptions{.num_layers = 2}), sequence, device) <
          3e-6);
    CHECK(difference_of_file(std::make_shared<nn::RNN>(4, 6, nn::RNNOptions{.nonlinearity = nn::RnnNonlinearity::relu}),
                             sequence, device) <= most);
    // Gates that are no product with weights.
    const auto gates = formula([](Value x) {
      const Value weights = constants(x.graph(), {8, 2}), first = constants(x.graph(), {3, 2});
      const RecurrentResult result = recurrent(
          ops::RecurrentCell::lstm, {.gates_x = concat({x, x}, 2), .weights = weights, .h0 = first, .c0 = first});
      return Values{result.y, result.hn, result.cn};
    });
    CHECK(difference_of_file(gates, sequence, device) <= most);
  }
}

TEST_CASE("an exported file has ONNX's own operators and the names of the parameters", "[onnx][export]") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "resnet20.onnx";
  onnx::save(file, *models::make("resnet20"), {.input = {1, 3, 32, 32}, .batch = "N", .outputs = {"logits"}});
  const onnx::Model model = onnx::read_model(file);
  CHECK(model.producer == "concord");
  CHECK(model.opsets.at(0).version == 17);
  CHECK(model.graph.outputs.at(0).name == "logits");
  REQUIRE(model.graph.inputs.at(0).shape);
  CHECK(model.graph.inputs[0].shape->at(0).name == "N");
  std::map<std::string, int> operators;
  for (const onnx::NodeDef& node : model.graph.nodes) ++operators[node.op_type];
  CHECK(operators["Conv"] == 21);  // two of them in shortcuts
  CHECK(operators["BatchNormalization"] == 21);
  CHECK(operators["Gemm"] == 1);
  CHECK(operators["Mul"] == 0);
  const auto has = [&](const std::string& name) {
    return std::ranges::find(model.graph.initializers, name, &onnx::TensorProto::name) !=
           model.graph.initializers.end();
  };
  Graph graph;
  graph.set_training(false);
  static_cast<void>((*models::make("resnet20"))(graph.input("x", {DType::f32, {1, 3, 32, 32}})));
  for (const VariablePtr& variable : graph.variables()) CHECK(has(variable->name));
}

TEST_CASE("an export names all operators that ONNX does not have, at once", "[onnx][export]") {
  const TemporaryFolder folder;
  Formula network([](Value x) {
    const Value noise = random_uniform(x.graph(), x.shape());
    return Values(x + noise + random_normal(x.graph(), x.shape()));
  });
  CHECK_THROWS_WITH(onnx::save(folder / "noise.onnx", network, {.input = {2, 3}}),
                    contains("random_uniform") && contains("random_normal"));
  CHECK(!std::filesystem::exists(folder / "noise.onnx"));
  Formula joined([](Value x) { return Values(slice(x, 0, 0, 1)); });
  CHECK_THROWS_WITH(onnx::save(folder / "part.onnx", joined, {.input = {2, 3}, .batch = "N"}),
                    contains("slice") && contains("fixed batch"));
  nn::Sequential net = two_layers();
  CHECK_THROWS_AS(onnx::save(folder / "x.onnx", net, {.input = {2, 6}, .opset = 12}), ArgumentError);
  CHECK_THROWS_AS(onnx::save(folder / "x.onnx", net, {}), ArgumentError);
  CHECK_THROWS_AS(onnx::save(folder / "x.onnx", net, {.input = {2, 6}, .outputs = {"a", "b"}}), ArgumentError);
  CHECK_THROWS_AS(onnx::save(folder / "x.onnx", net, {.input = {2, 6}, .outputs = {"input"}}), ArgumentError);
  const Tensor wrong(DType::f32, {1});
  CHECK_THROWS_AS(onnx::save(folder / "x.onnx", net, {.input = {2, 6}, .weights = {{"0.weight", wrong}}}), ShapeError);
}

TEST_CASE("given weights are written", "[onnx][export]") {
  const TemporaryFolder folder;
  nn::Sequential net = two_layers();
  const Tensor bias = Tensor::of<float>({3}, {1.5F, -2.0F, 0.25F});
  onnx::save(folder / "net.onnx", net, {.input = {2, 6}, .weights = {{"2.bias", bias}}});
  const onnx::Model model = onnx::read_model(folder / "net.onnx");
  const auto found = std::ranges::find(model.graph.initializers, "2.bias", &onnx::TensorProto::name);
  REQUIRE(found != model.graph.initializers.end());
  CHECK(std::ranges::equal(found->data.data, std::as_const(bias).bytes()));
}
