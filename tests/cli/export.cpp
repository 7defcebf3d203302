// concord export: networks of the zoo and of ONNX files, which the command checks by running what it wrote.
#include <algorithm>

#include "cli/process.hpp"
#include "concord/onnx/network.hpp"
#include "onnx/model_builder.hpp"

using namespace concord;
using namespace concord::test;

namespace {

using onnx::ElementType;

/// ids int64 (N, 4) and x (N, 8) → y (N, 3) and the int64 class (N, 1).
onnx::Model two_towers_file() {
  std::vector<float> table(40), weight(24);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = 0.1F * static_cast<float>(i % 7) - 0.3F;
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = 0.2F * static_cast<float>(i % 5) - 0.4F;
  onnx::Model model = empty_model();
  model.graph.inputs = {declared("ids", ElementType::i64, {-1, 4}), declared("x", ElementType::f32, {-1, 8})};
  model.graph.outputs = {declared("y", ElementType::f32, {-1, 3}), declared("class", ElementType::i64, {-1, 1})};
  model.graph.initializers = {float_proto("table", {5, 8}, table), float_proto("weight", {8, 3}, weight)};
  model.graph.nodes = {node("Gather", {"table", "ids"}, {"words"}),
                       node("ReduceMean", {"words"}, {"mean"},
                            {attribute("axes", std::vector<std::int64_t>{1}), attribute("keepdims", std::int64_t{0})}),
                       node("Add", {"mean", "x"}, {"sum"}), node("MatMul", {"sum", "weight"}, {"y"}),
                       node("ArgMax", {"y"}, {"class"}, {attribute("axis", std::int64_t{1})})};
  return model;
}

/// x (N, 8) → y (N, 3).
onnx::Model one_layer_file() {
  std::vector<float> weight(24);
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = 0.2F * static_cast<float>(i % 5) - 0.4F;
  onnx::Model model = empty_model();
  model.graph.inputs = {declared("x", ElementType::f32, {-1, 8})};
  model.graph.outputs = {declared("y", ElementType::f32, {-1, 3})};
  model.graph.initializers = {float_proto("weight", {8, 3}, weight)};
  model.graph.nodes = {node("MatMul", {"x", "weight"}, {"y"})};
  return model;
}

std::vector<std::string> names_of(const std::vector<onnx::ValueInfo>& values) {
  std::vector<std::string> names;
  for (const onnx::ValueInfo& value : values) names.push_back(value.name);
  return names;
}

}  // namespace

TEST_CASE("a file with several inputs is exported again, of any batch", "[cli]") {
  if (!command_is_there()) return;
  const ModelFile file(two_towers_file());
  const TemporaryFolder folder;
  const std::string from = file.path().string(), to = (folder / "again.onnx").string();
  const Ended ended =
      run_command({"export", from, "--batch", "N", "--out", to, "--verify", "--device", cheap_device()});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK_THAT(ended.out, test::contains("checked with concord: 2 outputs"));
  const onnx::Model again = onnx::read_model(to);
  CHECK(names_of(again.graph.inputs) == std::vector<std::string>{"ids", "x"});
  CHECK(names_of(again.graph.outputs) == std::vector<std::string>{"y", "class"});
  const NamedTensors inputs{
      {"ids", Tensor::of<std::int32_t>(Shape{2, 4}, std::vector<std::int32_t>{0, 1, 2, 3, 4, 4, 0, 1})},
      {"x", Tensor::of<float>(Shape{2, 8}, std::vector<float>(16, 0.25F))}};
  Session first(onnx::load(from), devices().front()), second(onnx::load(to), devices().front());
  const NamedTensors expected = first.run(inputs), found = second.run(inputs);
  for (const auto& [name, tensor] : expected) CHECK(std::ranges::equal(found.at(name).bytes(), tensor.bytes()));
}

TEST_CASE("a file is exported with other weights, and as a step of training", "[cli]") {
  if (!command_is_there()) return;
  const ModelFile file(one_layer_file());
  const TemporaryFolder folder;
  const std::string from = file.path().string(), to = (folder / "again.onnx").string();
  const std::string weights = (folder / "w.safetensors").string(), device = cheap_device();
  io::save_weights(weights, {{"weight", Tensor::of<float>(Shape{8, 3}, std::vector<float>(24, 0.5F))}});
  const Ended whole = run_command({"export", from, "--weights", weights, "--out", to, "--verify", "--device", device});
  REQUIRE(whole.code == 0);
  CHECK_THAT(whole.out, test::contains("checked with concord: 1 output\n"));
  Session session(onnx::load(to), devices().front());
  const Tensor ones = Tensor::of<float>(Shape{1, 8}, std::vector<float>(8, 1));
  const Tensor y = session.run({{"x", ones}}).at("y");
  for (const float number : y.values<float>()) CHECK(number == 4);
  const Ended step = run_command(
      {"export", from, "--training", "--batch", "4", "--lr", "0.1", "--out", to, "--verify", "--device", device});
  INFO(step.err);
  CHECK(step.code == 0);
  CHECK_THAT(step.out, test::contains("loss"));
}

TEST_CASE("an export refuses what a file does not have", "[cli]") {
  if (!command_is_there()) return;
  const ModelFile file(two_towers_file());
  const TemporaryFolder folder;
  const std::string from = file.path().string(), to = (folder / "again.onnx").string();
  check_refusal({"export", from, "--out", from}, 2, {"--out", "would replace a file that is read"});
  check_refusal({"export", from, "--training", "--batch", "4", "--out", to}, 2,
                {"one input and one output", "2 and 2"});
  check_refusal({"export", from, "--classes", "5", "--out", to}, 2, {"classes of a network in a file"});
  check_refusal({"export", (folder / "absent.onnx").string(), "--out", to}, 1, {"absent.onnx"});
  for (const Arguments& step :
       {Arguments{"--lr", "0.1"}, Arguments{"--optimizer", "adam"}, Arguments{"--momentum", "0"}}) {
    check_refusal(with({"export", "lenet", "--out", to}, step), 2, {step[0] + " is for --training"});
  }
  check_refusal({"export", "lenet", "--out", to, "--permit", "missing=*"}, 2, {"--permit needs --weights"});
  CHECK_FALSE(std::filesystem::exists(to));
  const Ended random = run_command({"export", "lenet", "--out", to});
  CHECK(random.code == 0);
  CHECK_THAT(random.err, test::contains("the weights are random numbers; --weights FILE"));
}
