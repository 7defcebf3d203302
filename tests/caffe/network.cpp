// Networks of Caffe: the outputs of a prototxt with its weights, and what is refused.
#include "concord/caffe/network.hpp"

#include "concord/caffe/prototxt.hpp"
#include "concord/weights/load.hpp"
#include "files.hpp"
#include "goldens.hpp"
#include "weights/drawn.hpp"

using namespace concord;
using namespace concord::test;

namespace {

template <class ErrorClass>
std::string load_refusal(const std::string& text) {
  const TemporaryFolder folder;
  write_file(folder / "net.prototxt", text);
  return message_of<ErrorClass>([&] { static_cast<void>(caffe::load_network(folder / "net.prototxt")); });
}

const std::string kInput = "input: \"data\"\n";

/// The output of a network for an input of this shape.
Value traced(const std::string& text, const Shape& shape, Graph& graph) {
  const TemporaryFolder folder;
  write_file(folder / "net.prototxt", text);
  graph.set_training(false);
  const auto network = caffe::load_network(folder / "net.prototxt");
  return (*network)(Values{{"data", graph.input("data", {DType::f32, shape})}}).begin()->value;
}

Shape traced_shape(const std::string& text, const Shape& shape) {
  Graph graph;
  return traced(text, shape, graph).shape();
}

}  // namespace

TEST_CASE("a network of Caffe gives the outputs of the same layers in PyTorch", "[caffe]") {
  const auto network = caffe::load_network(golden_path("weights/caffe_net.prototxt"));
  CHECK(network->input_names() == std::vector<std::string>{"data"});
  const TensorSpec spec{DType::f32, {2, 3, 12, 13}};
  Graph graph;
  graph.set_training(false);
  const Values outputs = (*network)({NamedValue{"data", graph.input("data", spec)}});
  CHECK(outputs.names() == "prob");
  const weights::Loaded loaded = weights::load(golden_path("weights/caffe_net.caffemodel"), weights::wanted_of(graph));
  CHECK(loaded.tensors.size() == 10);
  Tensor input(spec);
  draw_uniformly(input.values<float>(), "golden.input", -1, 1);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto variables = std::make_shared<Variables>(device, 1);
    Program program = compile(graph, {outputs["prob"]}, variables);
    for (const auto& [name, tensor] : loaded.tensors) variables->write(name, tensor);
    program.write("data", input);
    program.run();
    CHECK(difference(program.read(outputs["prob"]), golden("caffe.json").at("outputs")) < 1e-4);
  }
}

TEST_CASE("all layers of a Caffe network that are not known are named at once", "[caffe]") {
  const std::string message = load_refusal<NotSupported>(
      kInput +
      R"(layer { name: "a" type: "Python" bottom: "data" top: "a" } layer { name: "b" type: "Crop" top: "b" })");
  CHECK_THAT(message, contains("a (Python), b (Crop)"));
  CHECK_THAT(load_refusal<NotSupported>(kInput + "layers { name: \"a\" type: CONVOLUTION }"),
             contains("layers of the old form"));
}

TEST_CASE("a damaged prototxt is refused with its byte", "[caffe]") {
  CHECK_THAT(load_refusal<FormatError>("layer { name: \"a\""), contains("byte 17: a message has no end"));
  CHECK_THAT(load_refusal<FormatError>("name \"a\""), contains("byte 5: expected ':' or '{' after name"));
  CHECK_THAT(load_refusal<FormatError>("name: \"a"), contains("a text has no end"));
  CHECK_THAT(load_refusal<FormatError>(""), contains("the network has no input"));
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "a {";
  CHECK_THAT(load_refusal<FormatError>(deep), contains("too deep"));
  const caffe::TextMessage message =
      caffe::TextMessage::parse("a: 1 a: 2 b: [3, 4] c { d: true } e: 'x' f: -1.5", "text");
  CHECK(message.whole_numbers("a") == std::vector<std::int64_t>{1, 2});
  CHECK(message.whole_numbers("b") == std::vector<std::int64_t>{3, 4});
  CHECK(message.message("c").is_on("d", false));
  CHECK(message.text("e") == "x");
  CHECK(message.real("f", 0) == -1.5F);
  CHECK(message.whole("g", 7) == 7);
  CHECK_THAT(message_of<FormatError>([&] { (void)message.whole("f", 0); }), contains("byte 41: f is '-1.5'"));
}

TEST_CASE("layers of a prototxt follow Caffe's rules for phases and stages", "[caffe]") {
  const auto with = [](const std::string& rules) {
    const std::string layer = R"(layer { name: "b" type: "Flatten" bottom: "a" top: "b" )" + rules + " }";
    return traced_shape(kInput + R"(layer { name: "a" type: "TanH" bottom: "data" top: "a" })" + layer, {2, 3, 4});
  };
  const Shape there{2, 12}, left_out{2, 3, 4};
  CHECK(with("") == there);
  CHECK(with("include { phase: TEST }") == there);
  CHECK(with("include { phase: TRAIN } include { phase: TEST }") == there);
  CHECK(with("include { phase: TRAIN }") == left_out);
  CHECK(with("exclude { phase: TEST }") == left_out);
  CHECK(with("include { stage: 'deploy' }") == left_out);
  CHECK(with("include { not_stage: 'deploy' }") == there);
  CHECK(with("exclude { stage: 'deploy' }") == there);
  CHECK(with("include { min_level: 1 }") == left_out);
}

TEST_CASE("Flatten and Concat of Caffe take their axes, by the old name too", "[caffe]") {
  const auto shape_with = [](const std::string& layer) { return traced_shape(kInput + layer, {2, 3, 4, 5}); };
  const std::string flatten = R"(layer { name: "a" type: "Flatten" bottom: "data" top: "a" flatten_param { )";
  CHECK(shape_with(flatten + "axis: 2 } }") == Shape{2, 3, 20});
  CHECK(shape_with(flatten + "axis: 0 end_axis: -2 } }") == Shape{24, 5});
  const std::string concat =
      R"(layer { name: "a" type: "Concat" bottom: "data" bottom: "data" top: "a" concat_param { )";
  CHECK(shape_with(concat + "concat_dim: 0 } }") == Shape{4, 3, 4, 5});
  CHECK(shape_with(concat + "axis: 2 } }") == Shape{2, 3, 8, 5});
}

TEST_CASE("Caffe's LRN within a channel adds 1, whatever k is", "[caffe]") {
  const auto formula = [](const std::string& options) {
    Graph graph;
    const Value y =
        traced(kInput + R"(layer { name: "a" type: "LRN" bottom: "data" top: "a" lrn_param { )" + options + " } }",
               {1, 1, 3, 3}, graph);
    return y.node().op->attributes();
  };
  const std::string within = "local_size: 3 norm_region: WITHIN_CHANNEL";
  CHECK(formula(within + " k: 2") == formula(within));
  CHECK(formula("local_size: 3 k: 2") != formula("local_size: 3"));
}
