// concord export of ONNX files whose outputs are no numbers to be trained.
#include "cli/process.hpp"
#include "concord/onnx/network.hpp"
#include "onnx/model_builder.hpp"

using namespace concord;
using namespace concord::test;
using onnx::ElementType;

TEST_CASE("a file with integer outputs alone is exported again", "[cli]") {
  if (!command_is_there()) return;
  onnx::Model model = empty_model();
  model.graph.inputs = {declared("x", ElementType::f32, {-1, 8}), declared("mask", ElementType::boolean, {-1, 8}),
                        declared("ids", ElementType::i64, {-1, 8})};
  model.graph.outputs = {declared("class", ElementType::i64, {-1, 1}), declared("same", ElementType::i64, {-1, 8})};
  model.graph.initializers = {float_proto("zero", {}, {0})};
  model.graph.nodes = {node("Where", {"mask", "x", "zero"}, {"seen"}),
                       node("ArgMax", {"seen"}, {"class"}, {attribute("axis", std::int64_t{1})}),
                       node("Add", {"ids", "ids"}, {"same"})};
  const ModelFile file(model);
  const TemporaryFolder folder;
  const std::string to = (folder / "again.onnx").string();
  const Ended ended = run_command(
      {"export", file.path().string(), "--batch", "N", "--out", to, "--verify", "--device", cheap_device()});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK_THAT(ended.out, test::contains("checked with concord: 2 outputs"));
  CHECK(onnx::load(to).input_names() == std::vector<std::string>{"x", "mask", "ids"});
}
