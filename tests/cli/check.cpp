// concord check: what it says of ONNX files, and its exit code.
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "concord/onnx/wire.hpp"

using namespace concord;
using namespace concord::test;

namespace {

// x (N, 3) → a sum with w (3), through one more operator.
onnx::Model small_model(const std::string& op_type) {
  onnx::Model model;
  model.ir_version = 8;
  model.producer = "test";
  model.opsets = {{"", 17}};
  const std::vector<float> numbers{1, 2, 3};
  model.graph.initializers = {{"w", {3}, onnx::ElementType::f32, onnx::bytes_of(std::as_bytes(std::span(numbers)))}};
  model.graph.nodes = {{"sum", "Add", "", "", {"x", "w"}, {"s"}}, {"last", op_type, "", "", {"s"}, {"y"}}};
  model.graph.inputs = {{"x", onnx::ElementType::f32, std::vector<onnx::Dimension>{{{}, "N"}, {3}}}};
  model.graph.outputs = {{"y", onnx::ElementType::f32}};
  return model;
}

}  // namespace

TEST_CASE("concord check shows what an ONNX file has", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string path = (folder / "net.onnx").string();
  onnx::write_model(path, small_model("Relu"));
  const Ended text = run_command({"check", path});
  CHECK(text.code == 0);
  CHECK(contains(text.out, "input x: float [N, 3]"));
  CHECK(contains(text.out, "output y: float of any shape"));
  CHECK(contains(text.out, "1 Add 1 Relu"));
  CHECK(contains(text.out, "1 tensor, 3 numbers"));

  const nlohmann::json json = nlohmann::json::parse(run_command({"check", path, "--json"}).out);
  CHECK(json["supported"] == true);
  CHECK(json["opsets"]["ai.onnx"] == 17);
  CHECK(json["inputs"][0]["shape"] == nlohmann::json{"N", 3});
  CHECK(json["operators"]["Relu"] == 1);
}

TEST_CASE("concord check lists what is missing and fails", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string path = (folder / "net.onnx").string();
  onnx::write_model(path, small_model("SequenceConstruct"));
  const Ended text = run_command({"check", path});
  CHECK(text.code == 1);
  CHECK(contains(text.out, "missing SequenceConstruct 'last': sequences are not supported"));
  CHECK(contains(text.err, "does not support"));
  const nlohmann::json json = nlohmann::json::parse(run_command({"check", path, "--json"}).out);
  CHECK(json["supported"] == false);
  CHECK(json["missing"][0]["node"] == "last");
  check_refusal({"check", (folder / "absent.onnx").string()}, 1, {"absent.onnx"});
  write_file(folder / "text.onnx", "this is no model");
  check_refusal({"check", (folder / "text.onnx").string()}, 1, {"text.onnx", "byte"});
}
