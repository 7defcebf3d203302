// concord convert and --permit: weights of other programs on the command line.
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "goldens.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("convert writes safetensors and says what it did", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string from = golden_path("weights/checkpoint.pth"), to = (folder / "net.safetensors").string();
  const Ended text = run_command({"convert", from, to});
  REQUIRE(text.code == 0);
  CHECK_THAT(text.out, test::contains("PyTorch (zip)") && test::contains("the tensors are those of \"state_dict\"") &&
                           test::contains("left out: epoch, optimizer") && test::contains("2 tensors"));
  CHECK(io::read_safetensors(to).tensors.size() == 2);
  const Ended json = run_command({"convert", golden_path("weights/zip.pth"), to, "--json"});
  REQUIRE(json.code == 0);
  const nlohmann::json report = nlohmann::json::parse(json.out);
  CHECK(report.at("tensors") == 19);
  CHECK(report.at("cast").size() == 5);
}

TEST_CASE("convert does not replace its input, and refuses what it cannot read", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const std::string to = (folder / "net.safetensors").string();
  io::write_safetensors(to, {{"w", Tensor(DType::f32, {1})}});
  check_refusal({"convert", to, to}, 2, {"are the same file"});
  check_refusal({"convert", golden_path("weights/evil.pth"), to}, 1, {"evil.pth", "posix.system"});
  check_refusal({"convert", to, (folder / "b").string(), "--permit", "missing=*"}, 2, {"--for"});
  check_refusal({"convert", to, (folder / "b").string(), "--for", "lenet", "--permit", "some=*"}, 2, {"some=*"});
  CHECK_FALSE(std::filesystem::exists(folder / "b"));
}

TEST_CASE("convert --for gives the tensors of a network, with permitted differences", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const auto network = models::make("lenet");
  Graph graph;
  static_cast<void>((*network)(graph.input("x", models::batch_of(models::find("lenet"), 1))));
  io::TensorMap tensors;
  for (const VariablePtr& variable : graph.variables()) {
    tensors.emplace("module." + variable->name, Tensor(variable->spec));
  }
  const std::size_t count = tensors.size();
  tensors.emplace("module.more", Tensor(DType::f32, {1}));
  const std::string from = (folder / "theirs").string(), to = (folder / "ours").string();
  io::write_safetensors(from, tensors);
  check_refusal({"convert", from, to, "--for", "lenet"}, 1, {"1 unexpected (module.more)"});
  const Ended ended = run_command({"convert", from, to, "--for", "lenet", "--permit", "extra=module.more", "--json"});
  REQUIRE(ended.code == 0);
  const nlohmann::json report = nlohmann::json::parse(ended.out);
  CHECK(report.at("renamed").size() == count);
  CHECK(report.at("extra") == nlohmann::json{"module.more"});
  CHECK(io::read_safetensors(to).tensors.size() == count);
}
