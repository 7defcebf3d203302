// concord run: outputs of networks and ONNX files, and the files that they go to.
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "concord/onnx/wire.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// x (N, 3) and shift (3) → s (N, 3), their sum, and int64 i (N, 1), its largest element.
onnx::Model two_inputs() {
  const std::vector<onnx::Dimension> rows{{{}, "N"}, {3, {}}};
  onnx::Model model;
  model.ir_version = 8;
  model.opsets = {{"", 17}};
  model.graph.name = "two inputs";
  model.graph.inputs = {{"x", onnx::ElementType::f32, rows},
                        {"shift", onnx::ElementType::f32, std::vector<onnx::Dimension>{{3, {}}}}};
  model.graph.outputs = {{"s", onnx::ElementType::f32, rows}, {"i", onnx::ElementType::i64}};
  onnx::Attribute axis{"axis", onnx::AttributeType::i};
  axis.i = 1;
  model.graph.nodes = {{"sum", "Add", "", "", {"x", "shift"}, {"s"}},
                       {"largest", "ArgMax", "", "", {"s"}, {"i"}, {axis}}};
  return model;
}

}  // namespace

TEST_CASE("concord run computes the outputs of an ONNX file", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const auto in = [&](const char* name) { return (folder / name).string(); };
  onnx::write_model(in("net.onnx"), two_inputs());
  io::write_npy(in("x.npy"), Tensor::of<float>(Shape{2, 3}, std::vector<float>{1, 2, 3, 6, 5, 4}));
  io::write_npy(in("shift.npy"), Tensor::of<float>(Shape{3}, std::vector<float>{0, 10, 0}));
  const std::vector<std::string> given{
      "run", in("net.onnx"), "--input", "x=" + in("x.npy"), "--input", "shift=" + in("shift.npy"), "--device", "cpu"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), given.begin(), given.end());
    return more;
  };
  const Ended text = run_command(given);
  CHECK(text.code == 0);
  CHECK(contains(text.out, "s: f32 [2, 3], 1 12 3 6 15 4"));
  CHECK(contains(text.out, "i: i32 [2, 1], 1 1"));
  const nlohmann::json json = nlohmann::json::parse(run_command(with({"--json", "--repeat", "3"})).out);
  CHECK(json["outputs"]["s"]["shape"] == nlohmann::json{2, 3});
  CHECK(json["outputs"]["s"]["values"][4] == 15);
  CHECK(json["milliseconds"]["least"] > 0);

  CHECK(run_command(with({"--output", "i=" + in("i.npy"), "--output", in("all.safetensors")})).code == 0);
  CHECK(contains(content_of(in("i.npy")), "'<i8'"));  // int64, as the file declares it
  CHECK(io::read_npy(in("i.npy")).values<std::int32_t>()[1] == 1);
  CHECK(io::read_safetensors(in("all.safetensors")).tensors.at("s").values<float>()[4] == 15);
  io::write_safetensors(in("inputs.safetensors"),
                        {{"x", io::read_npy(in("x.npy"))}, {"shift", io::read_npy(in("shift.npy"))}});
  CHECK(run_command({"run", in("net.onnx"), "--input", in("inputs.safetensors"), "--device", "cpu"}).out == text.out);
  CHECK(run_command({"run", in("net.onnx"), "--input", "x=random:2x3", "--known", "shift=" + in("shift.npy"),
                     "--device", "cpu"})
            .code == 0);
}

TEST_CASE("concord run says what is wrong with its inputs and outputs", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const auto in = [&](const char* name) { return (folder / name).string(); };
  const std::string net = in("net.onnx");
  onnx::write_model(net, two_inputs());
  io::write_npy(in("whole.npy"), Tensor(DType::i32, Shape{3}));
  check_refusal({"run", net, "--input", "x=random:2x3"}, 2, {"needs the input shift", "float [3]"});
  check_refusal({"run", net, "--input", in("whole.npy")}, 2, {"name the input", "x, shift"});
  check_refusal({"run", net, "--input", "x=random:2x3", "--input", "shift=" + in("whole.npy")}, 2,
                {"the input shift", "is f32, but the file has i32 [3]"});
  check_refusal({"run", net, "--input", "x=random:2x", "--input", "shift=random:3"}, 2, {"expected sizes"});
  check_refusal({"run", net, "--input", "x=random:2x3", "--input", "x=random:2x3"}, 2, {"given twice"});
  check_refusal({"run", net, "--input", "x=pictures.jpg"}, 2, {"expected NAME=FILE.npy"});
  check_refusal({"run", net, "--input", "x=" + in("none.npy")}, 1, {"none.npy"});
  check_refusal({"run", net, "--input", "x=random:2x4", "--input", "shift=random:3", "--device", "cpu"}, 1,
                {"the input 'x'", "float [N, 3]", "f32 [2, 4]"});
  check_refusal(
      {"run", net, "--input", "x=random:2x3", "--input", "shift=random:3", "--output", in("y.npy"), "--device", "cpu"},
      2, {"name the output", "i, s"});
  check_refusal({"run", net, "--input", "x=random:2x3", "--output", "s=y.png"}, 2, {"expected NAME=FILE.npy"});
  check_refusal({"run", "lenet", "--input", in("whole.npy")}, 2, {"lenet takes f32 [1, 1, 28, 28]"});
  check_refusal({"run", "lenet", "--input", "random:1x1x28x28", "--known", "a=b.npy"}, 2, {"--known is for ONNX"});
  check_refusal({"run", "lenet", "--input", "random:1x1x28x28", "--permit", "missing=*"}, 2,
                {"--permit needs --weights"});
  check_refusal({"run", "lenett", "--input", "random:1x1x28x28"}, 2, {"did you mean lenet"});
}

TEST_CASE("concord run takes a network of the zoo, with the weights of a file", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string weights = (folder / "mlp.safetensors").string(), out = (folder / "y.npy").string();
  const auto network = models::make("mlp");
  Session session(network, devices().front(), {.seed = 9});
  Tensor input(DType::f32, Shape{2, 1, 28, 28});
  std::ranges::fill(input.values<float>(), 0.25F);
  const Tensor expected = session.run(input);
  io::save_weights(weights, *session.variables(), session.variables()->names());
  io::write_npy(folder / "x.npy", input);
  const Ended ended = run_command(
      {"run", "mlp", "--weights", weights, "--input", (folder / "x.npy").string(), "--output", out, "--device", "cpu"});
  INFO(ended.err);
  CHECK(ended.code == 0);
  const Tensor found = io::read_npy(out);
  REQUIRE(found.spec() == expected.spec());
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(found.values<float>()[i] == Approx(expected.values<float>()[i]).margin(1e-5));
  }
}
