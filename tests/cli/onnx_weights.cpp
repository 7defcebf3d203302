// concord evaluate and predict with the weights of an ONNX file.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "concord/io/safetensors.hpp"
#include "onnx/model_builder.hpp"

using namespace concord;
using namespace concord::test;

namespace {

using onnx::ElementType;

constexpr std::int64_t kSide = 4, kPixels = kSide * kSide, kClasses = 3;

/// A grey picture of 4x4 whose brightness differs with `shift`.
std::string picture(int shift) {
  std::string text = "P5 4 4 255\n";
  for (int i = 0; i < kPixels; ++i) text += static_cast<char>((i * 13 + shift * 61) % 256);
  return text;
}

/// x (batch, 1, 4, 4) → y (batch, 3): a matrix, and with `end` another node.
onnx::Model classifier(std::int64_t batch, const std::string& end = {}, std::int64_t opset = 17) {
  std::vector<float> weight(kPixels * kClasses);
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = 0.4F * static_cast<float>(i % 7) - 1.1F;
  onnx::Model model = empty_model(opset);
  model.graph.inputs = {declared("x", ElementType::f32, {batch, 1, kSide, kSide})};
  model.graph.outputs = {declared("y", ElementType::f32, {batch, kClasses})};
  model.graph.initializers = {float_proto("weight", {kPixels, kClasses}, weight)};
  model.graph.nodes = {node("Flatten", {"x"}, {"row"}), node("MatMul", {"row", "weight"}, {end.empty() ? "y" : "z"})};
  if (!end.empty()) model.graph.nodes.push_back(node(end, {"z"}, {"y"}));
  return model;
}

/// Pictures of three classes in folders, and files of networks beside them.
struct Pictures {
  TemporaryFolder folder;
  Pictures() {
    for (int i = 0; i < kClasses; ++i) {
      std::filesystem::create_directories(folder / fmt::format("data/c{}", i));
      write_file(folder / fmt::format("data/c{}/{}.pgm", i, i), picture(i));
    }
  }
  [[nodiscard]] std::string data() const { return (folder / "data").string(); }
  [[nodiscard]] std::string write(const std::string& name, const onnx::Model& model) const {
    const std::string path = (folder / name).string();
    onnx::write_model(path, model);
    return path;
  }
  [[nodiscard]] Ended run(const Arguments& arguments) const {
    return run_command(with(arguments, {"--device", cheap_device()}));
  }
  [[nodiscard]] nlohmann::json json(const Arguments& arguments) const {
    const Ended ended = run(with(arguments, {"--json"}));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return nlohmann::json::parse(ended.out);
  }
  [[nodiscard]] Tensor outputs(const Arguments& arguments) const {
    const std::string file = (folder / "outputs.safetensors").string();
    const Ended ended = run(with(arguments, {"--out", file}));
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return io::read_safetensors(file).tensors.at("outputs");
  }
};

void check_close(const Tensor& found, const Tensor& expected) {
  REQUIRE(found.shape() == expected.shape());
  const auto a = found.values<float>(), b = expected.values<float>();
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).margin(1e-5));
}

/// Predictions of all classes with --json: the same samples and order, and probabilities that rounding may move, as a
/// device may multiply matrices of other sizes in another order.
void check_same_classes(const nlohmann::json& found, const nlohmann::json& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i]["sample"] == expected[i]["sample"]);
    REQUIRE(found[i]["classes"].size() == kClasses);
    for (std::size_t k = 0; k < kClasses; ++k) {
      const nlohmann::json &one = found[i]["classes"][k], &other = expected[i]["classes"][k];
      CHECK(one["predicted"] == other["predicted"]);
      CHECK(one["probability"].get<double>() == Approx(other["probability"].get<double>()).margin(1e-6));
    }
  }
}

}  // namespace

TEST_CASE("an exported network predicts and is evaluated as the one that it was", "[cli]") {
  if (!command_is_there()) return;
  const Pictures at;
  const std::string digits = write_digits(at.folder / "digits", 60, 20);
  const std::string weights = (at.folder / "net.safetensors").string();
  REQUIRE(at.run({"train", "lenet", "--data", digits, "--batch", "10", "--epochs", "1", "--quiet", "--out", weights})
              .code == 0);
  const Tensor expected = at.outputs({"predict", weights, "--data", digits, "--count", "20"});
  const nlohmann::json metrics = at.json({"evaluate", weights, digits});
  for (const char* batch : {"N", "1"}) {  // free, and as an export without --batch has it
    INFO(batch);
    const std::string file = (at.folder / "net.onnx").string();
    REQUIRE(at.run({"export", "lenet", "--weights", weights, "--batch", batch, "--out", file}).code == 0);
    check_close(at.outputs({"predict", file, "--data", digits, "--count", "20"}), expected);
    const nlohmann::json found = at.json({"evaluate", file, "--data", digits});
    CHECK(found["accuracy"] == metrics["accuracy"]);
    CHECK(found["loss"].get<double>() == Approx(metrics["loss"].get<double>()).margin(1e-5));
  }
}

TEST_CASE("the outputs of an ONNX file are those of concord run", "[cli]") {
  if (!command_is_there()) return;
  const Pictures at;
  const std::string net = at.write("net.onnx", classifier(-1));
  std::vector<float> pixels;
  for (int i = 0; i < kClasses; ++i) {
    const std::string bytes = picture(i);
    for (const char byte : bytes.substr(bytes.size() - kPixels)) {
      pixels.push_back(static_cast<float>(static_cast<unsigned char>(byte)) / 255);
    }
  }
  const std::string inputs = (at.folder / "x.npy").string(), ran = (at.folder / "y.safetensors").string();
  io::write_npy(inputs, Tensor::of<float>(Shape{kClasses, 1, kSide, kSide}, pixels));
  REQUIRE(at.run({"run", net, "--input", inputs, "--output", ran}).code == 0);
  check_close(at.outputs({"predict", net, at.data()}), io::read_safetensors(ran).tensors.at("y"));
  const nlohmann::json named = at.json({"predict", net, "--data", "folder:" + at.data(), "--split", "train"});
  for (const nlohmann::json& one : named) CHECK(one["name"] == fmt::format("c{}", one["predicted"].get<int>()));
  CHECK(at.json({"predict", net, at.data()})[0]["name"] == at.json({"predict", net, at.data()})[0]["predicted"].dump());
}

TEST_CASE("the probabilities of an ONNX file that ends with a softmax are its outputs", "[cli]") {
  if (!command_is_there()) return;
  const Pictures at;
  const std::string logits = at.write("logits.onnx", classifier(-1)), data = "folder:" + at.data();
  const nlohmann::json expected = at.json({"predict", logits, at.data(), "--top", "3"});
  const double loss = at.json({"evaluate", logits, data, "--split", "train"})["loss"];
  for (const std::int64_t opset : {11, 17}) {
    INFO(opset);
    const std::string net = at.write("softmax.onnx", classifier(-1, "Softmax", opset));
    const nlohmann::json found = at.json({"predict", net, at.data(), "--top", "3"});
    check_same_classes(found, expected);
    CHECK(at.json({"evaluate", net, data, "--split", "train"})["loss"].get<double>() == Approx(loss).margin(1e-5));
  }
}

TEST_CASE("a file that leaves the size of images open gets it from --image", "[cli]") {
  if (!command_is_there()) return;
  const Pictures at;
  onnx::Model model = empty_model();
  model.graph.inputs = {declared("x", ElementType::f32, {-1, 1, -1, -1})};
  model.graph.outputs = {declared("y", ElementType::f32, {-1, 2})};
  model.graph.initializers = {float_proto("w", {2, 1, 3, 3}, std::vector<float>(18, 0.5F))};
  model.graph.nodes = {node("Conv", {"x", "w"}, {"c"}), node("GlobalMaxPool", {"c"}, {"m"}),
                       node("Flatten", {"m"}, {"y"})};
  const std::string net = at.write("open.onnx", model);
  check_refusal({"predict", net, at.data()}, 2, {"float [?, 1, ?, ?]", "such as --image 224"});
  check_refusal({"evaluate", net, "folder:" + at.data()}, 2, {"such as --image 224"});
  check_refusal({"evaluate", net, "random"}, 2, {"random data needs the sizes of a sample"});
  CHECK(at.json({"predict", net, at.data(), "--image", "4"}).size() == 3);
}

TEST_CASE("a file with a fixed batch is run in batches of that size", "[cli]") {
  if (!command_is_there()) return;
  const Pictures at;
  const std::string one = at.write("one.onnx", classifier(1)), two = at.write("two.onnx", classifier(2));
  const std::string data = "folder:" + at.data();
  CHECK(at.json({"evaluate", one, data, "--split", "train"})["samples"] == 3);
  check_refusal({"evaluate", one, data, "--batch", "8"}, 2, {"--batch 8", "takes batches of 1; leave --batch out"});
  check_refusal({"evaluate", two, data, "--split", "train"}, 1,
                {"takes batches of 2, which 3 samples do not fill", "concord export --batch N"});
  const std::string any = at.write("any.onnx", classifier(-1));
  CHECK(at.json({"evaluate", any, data, "--split", "train"})["samples"] == 3);
}

TEST_CASE("predict takes any number of samples for a file with a fixed batch", "[cli]") {
  if (!command_is_there()) return;
  const Pictures at;
  const std::string any = at.write("any.onnx", classifier(-1)), data = "folder:" + at.data();
  const Arguments named{"--data", data, "--split", "train"};
  const Tensor expected = at.outputs({"predict", any, at.data()});
  const nlohmann::json classes = at.json({"predict", any, at.data(), "--top", "3"});
  const Tensor first_two = at.outputs(with({"predict", any, "--count", "2"}, named));
  for (const std::int64_t batch : {1, 2, 3, 8}) {
    INFO(batch);
    const std::string net = at.write("fixed.onnx", classifier(batch));
    check_close(at.outputs({"predict", net, at.data()}), expected);
    check_close(at.outputs(with({"predict", net}, named)), expected);
    check_close(at.outputs(with({"predict", net, "--count", "2"}, named)), first_two);
    CHECK(at.json({"predict", net, "--data", "random"}).size() == 10);
    check_same_classes(at.json({"predict", net, at.data(), "--top", "3"}), classes);
  }
}

TEST_CASE("a picture that cannot be read leaves the others of a fixed batch their predictions", "[cli]") {
  if (!command_is_there()) return;
  const Pictures at;
  const std::string any = at.write("any.onnx", classifier(-1)), two = at.write("two.onnx", classifier(2));
  write_file(at.folder / "data/c0/9.pgm", "P5 4 4 255\n");  // without pixels; four files fill two batches
  const std::string outputs = (at.folder / "outputs.safetensors").string();
  for (const Arguments& words :
       {Arguments{at.data()}, Arguments{"--data", "folder:" + at.data(), "--split", "train"}}) {
    const auto predicted = [&](const std::string& net) {
      const Ended ended = at.run(with({"predict", net, "--json", "--out", outputs}, words));
      INFO(ended.err);
      CHECK(ended.code == 1);
      CHECK_THAT(ended.err, contains("1 of 4 ") && contains("could not be predicted"));
      return std::pair(nlohmann::json::parse(ended.out), io::read_safetensors(outputs).tensors.at("outputs"));
    };
    const auto [expected, values] = predicted(any);
    const auto [found, others] = predicted(two);
    check_close(others, values);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].contains("error") == expected[i].contains("error"));
      CHECK(found[i].value("predicted", -1) == expected[i].value("predicted", -1));
    }
  }
}

TEST_CASE("--permit with the weights of an ONNX file is refused before there are data", "[cli]") {
  if (!command_is_there()) return;
  const Pictures at;
  const std::string net = at.write("net.onnx", classifier(-1)), absent = (at.folder / "absent").string();
  const Arguments permit{"--permit", "missing=*", "--device", "opencl:99"};
  const std::vector<std::string> words{"--permit is for a file of weights", "net.onnx"};
  check_refusal(with({"predict", net, absent + ".png"}, permit), 2, words);
  check_refusal(with({"predict", net, "--data", "folder:" + absent}, permit), 2, words);
  check_refusal(with({"evaluate", net, "folder:" + absent}, permit), 2, words);
  check_refusal({"predict", net, at.data(), "--permit", "all"}, 2, {"--permit"});
}

TEST_CASE("an ONNX file that is no classifier is refused with its inputs or outputs", "[cli]") {
  if (!command_is_there()) return;
  const Pictures at;
  onnx::Model inputs = classifier(-1), outputs = classifier(-1), integers = classifier(-1);
  inputs.graph.inputs.push_back(declared("shift", ElementType::f32, {3}));
  outputs.graph.outputs.push_back(declared("row", ElementType::f32, {-1, kPixels}));
  integers.graph.inputs = {declared("ids", ElementType::i64, {-1, 1, kSide, kSide})};
  integers.graph.nodes.insert(integers.graph.nodes.begin(),
                              node("Cast", {"ids"}, {"x"}, {attribute("to", std::int64_t{1})}));
  const std::string several = at.write("inputs.onnx", inputs), more = at.write("outputs.onnx", outputs);
  const std::string whole = at.write("integers.onnx", integers), data = "folder:" + at.data();
  check_refusal({"predict", several, at.data()}, 1, {"one input of floats", "shift: float [3]", "`concord run`"});
  check_refusal({"predict", more, at.data()}, 1, {"one output of floats (N, classes)", "row: float [?, 16]"});
  check_refusal({"predict", whole, at.data()}, 1, {"one input of floats", "ids: int64"});
  check_refusal({"evaluate", several, data}, 1,
                {"one input of type f32", "takes x: float [?, 1, 4, 4], shift: float [3]"});
  check_refusal({"evaluate", more, data}, 1, {"one output of floats (N, classes)", "row: float [?, 16]"});
  check_refusal({"evaluate", whole, data}, 1, {"one input of type f32", "ids: int64"});
}

TEST_CASE("an ONNX file that is damaged or absent is refused", "[cli]") {
  if (!command_is_there()) return;
  const Pictures at;
  const std::string net = at.write("net.onnx", classifier(-1)), absent = (at.folder / "absent.onnx").string();
  const std::string cut = (at.folder / "cut.onnx").string(), empty = (at.folder / "empty.onnx").string();
  write_file(cut, content_of(net).substr(0, content_of(net).size() / 2));
  write_file(empty, "");
  for (const std::string& file : {absent, cut, empty}) {
    check_refusal({"predict", file, at.data()}, 1, {file});
    check_refusal({"evaluate", file, "folder:" + at.data()}, 1, {file});
  }
}
