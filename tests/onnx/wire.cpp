// The wire format of ONNX: what is written is read again, damage is a FormatError with its byte, and external data
// stays in the folder of its model.
#include "concord/onnx/wire.hpp"

#include <numeric>

#include "files.hpp"
#include "onnx/onnx_test.hpp"

using namespace concord;
using namespace concord::onnx;
using namespace concord::test;

namespace {

TensorProto tensor_proto(const std::string& name, std::vector<std::int64_t> dims, const std::vector<float>& values) {
  return {name, std::move(dims), ElementType::f32, bytes_of(std::as_bytes(std::span(values))), {}};
}

// Everything that the structs have, at least once.
Model full_model() {
  Model model;
  model.ir_version = 8;
  model.producer = "test";
  model.opsets = {{"", 17}, {"own", 1}};
  model.metadata = {{"key", "value"}};
  NodeDef node{"first", "Own", "own", "", {"x", "", "w"}, {"y"}};
  node.attributes.push_back({.name = "f", .type = AttributeType::f, .f = 0.5F});
  node.attributes.push_back({.name = "i", .type = AttributeType::i, .i = -3});
  node.attributes.push_back({.name = "s", .type = AttributeType::s, .s = std::string("\xff\0z", 3)});
  node.attributes.push_back({.name = "floats", .type = AttributeType::floats, .floats = {1, -2}});
  node.attributes.push_back({.name = "ints", .type = AttributeType::ints, .ints = {1, -2, std::int64_t{1} << 40}});
  node.attributes.push_back({.name = "strings", .type = AttributeType::strings, .strings = {"a", "b"}});
  node.attributes.push_back({.name = "t", .type = AttributeType::tensor, .tensors = {tensor_proto("", {2}, {1, 2})}});
  Attribute graph{.name = "g", .type = AttributeType::graph};
  graph.graphs.emplace_back();
  graph.graphs[0].nodes.push_back({"inner", "Neg", "", "", {"x"}, {"z"}});
  node.attributes.push_back(graph);
  model.graph.name = "graph";
  model.graph.nodes = {node};
  model.graph.initializers = {tensor_proto("w", {2, 3}, {1, 2, 3, 4, 5, 6})};
  TensorProto texts{"texts", {2}, ElementType::string, {}, {"one", ""}};
  model.graph.initializers.push_back(texts);
  model.graph.inputs = {{"x", ElementType::f32, std::vector<Dimension>{{3, {}}, {std::nullopt, "N"}, {}}}};
  model.graph.outputs = {{"y", ElementType::i64}};
  FunctionDef function{"Own", "own", "", ""};
  function.inputs = {"a", "b", "c"};
  function.outputs = {"d"};
  function.attributes = {"axis"};
  function.nodes.push_back({"", "Softmax", "", "", {"a"}, {"d"}});
  function.nodes[0].attributes.push_back({.name = "axis", .type = AttributeType::i, .reference = "axis"});
  function.opsets = {{"", 17}};
  model.functions = {function};
  TrainingInfo training;
  training.algorithm.nodes.push_back({"", "Neg", "", "", {"w"}, {"w2"}});
  training.update_bindings = {{"w", "w2"}};
  model.training = {training};
  return model;
}

Model parsed(const std::string& bytes) {
  return parse_model(std::make_shared<const std::string>(bytes), "memory.onnx");
}

std::string refusal(const std::string& bytes) {
  return message_of<FormatError>([&] { (void)parsed(bytes); });
}

}  // namespace

TEST_CASE("an ONNX model is written and read again", "[onnx]") {
  const std::string bytes = serialise(full_model());
  const Model model = parsed(bytes);
  CHECK(serialise(model) == bytes);
  CHECK(model.ir_version == 8);
  CHECK(model.opsets.size() == 2);
  REQUIRE(model.graph.nodes.size() == 1);
  const NodeDef& node = model.graph.nodes[0];
  CHECK(node.inputs == std::vector<std::string>{"x", "", "w"});
  CHECK(node.find("ints")->ints == std::vector<std::int64_t>{1, -2, std::int64_t{1} << 40});
  CHECK(node.find("i")->i == -3);
  CHECK(node.find("s")->s.size() == 3);
  CHECK(node.find("g")->graphs[0].nodes.at(0).op_type == "Neg");
  CHECK(node.find("absent") == nullptr);
  CHECK(model.graph.initializers[0].data.data.size() == 24);
  CHECK(model.graph.initializers[1].strings == std::vector<std::string>{"one", ""});
  REQUIRE(model.graph.inputs[0].shape);
  CHECK(model.graph.inputs[0].shape->at(0).size == 3);
  CHECK(model.graph.inputs[0].shape->at(1).name == "N");
  CHECK_FALSE(model.graph.outputs[0].shape);
  CHECK(model.functions[0].nodes[0].find("axis")->reference == "axis");
  CHECK(model.training[0].update_bindings == Bindings{{"w", "w2"}});
}

TEST_CASE("every ONNX file at hand is read, and written without a loss", "[onnx]") {
  const auto files = onnx_files();
  if (files.empty()) {
    WARN("skipped: neither libonnx-testdata nor the folder of models is here");
    return;
  }
  for (const auto& path : files) {
    INFO(path.string());
    const Model model = read_model(path);
    const std::string bytes = serialise(model);
    const Model again = parsed(bytes);
    CHECK(serialise(again) == bytes);
    CHECK(again.graph.nodes.size() == model.graph.nodes.size());
    REQUIRE(again.graph.inputs.size() == model.graph.inputs.size());
    for (std::size_t i = 0; i < model.graph.inputs.size(); ++i) {
      const auto& shape = model.graph.inputs[i].shape;
      const auto& same = again.graph.inputs[i].shape;
      REQUIRE(same.has_value() == shape.has_value());
      if (shape) CHECK(same->size() == shape->size());
    }
  }
}

TEST_CASE("a truncated ONNX model is a FormatError with the byte", "[onnx]") {
  const std::string whole = serialise(full_model());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    try {
      (void)parsed(whole.substr(0, length));  // fine where a field ends
    } catch (const FormatError& error) {
      CHECK(contains(error.what(), "memory.onnx, byte "));
    }
  }
  CHECK(contains(refusal(""), "has no graph"));
  CHECK(contains(refusal(whole.substr(0, 40)), "byte "));
}

TEST_CASE("a damaged ONNX model is read or refused, nothing else", "[onnx]") {
  const std::string whole = serialise(full_model());
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    try {
      (void)parsed(damaged);
    } catch (const FormatError&) {
      ++refused;
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("an ONNX tensor whose data does not fit its shape is refused", "[onnx]") {
  Model model = full_model();
  SECTION("too short") {
    model.graph.initializers[0].dims = {2, 4};
    CHECK(contains(refusal(serialise(model)), "tensor 'w' has 24 bytes of data, its shape and type need 32"));
  }
  SECTION("a length bomb") {
    model.graph.initializers[0].dims = {std::int64_t{1} << 40, 1 << 20};
    CHECK(contains(refusal(serialise(model)), "too large"));
    model.graph.initializers[0] = {"w", {std::int64_t{1} << 58}, ElementType::i64, {}, {}};  // 2^64 bits
    CHECK(contains(refusal(serialise(model)), "too large"));
    model.graph.initializers[0].dims = {std::int64_t{1} << 50};
    CHECK(contains(refusal(serialise(model)), "its shape and type need"));
  }
  SECTION("negative") {
    model.graph.initializers[0].dims = {-2, -3};
    CHECK(contains(refusal(serialise(model)), "negative"));
  }
  SECTION("unknown type") {
    model.graph.initializers[0].type = static_cast<ElementType>(99);
    CHECK(contains(refusal(serialise(model)), "unknown element type 99"));
  }
}

TEST_CASE("ONNX messages that are nested too deeply are refused", "[onnx]") {
  GraphDef graph;
  graph.name = "innermost";
  for (int i = 0; i < 40; ++i) {
    GraphDef outer;
    NodeDef node{"", "If", "", "", {"c"}, {"y"}};
    Attribute attribute{.name = "then_branch", .type = AttributeType::graph};
    attribute.graphs.push_back(std::move(graph));
    node.attributes.push_back(std::move(attribute));
    outer.nodes.push_back(std::move(node));
    graph = std::move(outer);
  }
  Model model;
  model.graph = std::move(graph);
  CHECK(contains(refusal(serialise(model)), "nested"));
}

TEST_CASE("external data is read from the folder of the model, and from nowhere else", "[onnx]") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "inside");
  std::filesystem::create_directories(folder / "model");
  Model model = full_model();
  std::vector<float> numbers(500);
  std::iota(numbers.begin(), numbers.end(), 0.F);
  model.graph.initializers.push_back(tensor_proto("large", {500}, numbers));
  const auto path = folder / "model/net.onnx";
  write_model(path, model, {.external_data = "net.data"});
  CHECK(std::filesystem::file_size(folder / "model/net.data") == 2000);
  const Model again = read_model(path);
  REQUIRE(again.graph.initializers.size() == 3);
  CHECK(std::ranges::equal(again.graph.initializers[2].data.data, std::as_bytes(std::span(numbers))));

  const std::string bytes = content_of(path);
  const auto with_location = [&](const std::string& location) {  // of the same length as "net.data"
    std::string changed = bytes;
    changed.replace(changed.find("net.data"), 8, location);
    write_file(path, changed);
    return message_of<FormatError>([&] { (void)read_model(path); });
  };
  std::filesystem::copy_file(folder / "model/net.data", folder / "a.dat");
  CHECK(contains(with_location("../a.dat"), "leaves the model's folder"));
  CHECK(contains(with_location("/etc/xyz"), "is not a path within the model's folder"));
  CHECK(contains(with_location("absent.x"), "cannot be read"));
  std::filesystem::create_symlink(folder / "a.dat", folder / "model/link.dat");
  CHECK(contains(with_location("link.dat"), "leads out of the model's folder"));
  std::filesystem::create_directory_symlink(folder.path(), folder / "model/up");
  CHECK(contains(with_location("up/a.dat"), "leads out of the model's folder"));
  std::filesystem::create_directory(folder / "model/net.fold");
  CHECK(contains(with_location("net.fold"), "not a regular file"));
  std::filesystem::resize_file(folder / "model/net.data", 1999);
  CHECK(contains(with_location("net.data"), "which has 1999"));
  CHECK(contains(refusal(bytes), "a model in memory has no folder"));
  CHECK_THROWS_AS(write_model(path, model, {.external_data = "../net.data"}), ArgumentError);
}

TEST_CASE("an ONNX model that cannot be written leaves the data of the one before", "[onnx]") {
  const TemporaryFolder folder;
  Model model = full_model();
  write_model(folder / "net.onnx", model, {.external_data = "net.data", .external_from = 1});
  const std::string before = content_of(folder / "net.data");
  model.graph.initializers[0] = tensor_proto("w", {1}, {7});
  std::filesystem::remove(folder / "net.onnx");
  std::filesystem::create_directory(folder / "net.onnx");
  CHECK_THROWS_AS(write_model(folder / "net.onnx", model, {.external_data = "net.data", .external_from = 1}), IoError);
  CHECK(content_of(folder / "net.data") == before);
}
