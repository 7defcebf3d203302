// Checkpoints: everything comes back, and the file of another network is refused with names.
#include "concord/io/checkpoint.hpp"

#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

io::CheckpointInfo example_info() {
  io::CheckpointInfo info;
  info.network = "lenet";
  info.epoch = 3;
  info.step = 2814;
  info.position = 640;
  info.permutation_epoch = 3;
  info.seed = 0xfedcba9876543210ull;
  info.schedule = {{"best", "0.25"}, {"kind", "plateau"}};
  info.extra = {{"note", "a \"quoted\" word"}};
  return info;
}

io::TensorMap example_tensors() {
  return {{"fc.weight", Tensor::of<float>({2, 2}, std::vector<float>{1, 2, 3, 4})},
          {"fc.bias", Tensor(DType::f32, {2})},
          {"random.state", Tensor::of<std::int32_t>({4}, std::vector<std::int32_t>{1, -1, 5, 0})}};
}

const std::map<std::string, TensorSpec> kNetwork = {{"fc.weight", {DType::f32, {2, 2}}},
                                                    {"fc.bias", {DType::f32, {2}}}};

}  // namespace

TEST_CASE("a checkpoint comes back whole", "[io]") {
  const TemporaryFolder folder;
  const io::CheckpointInfo info = example_info();
  io::save_checkpoint(folder / "a", example_tensors(), info);
  const io::Checkpoint back = io::load_checkpoint(folder / "a");
  CHECK(back.info.network == info.network);
  CHECK(back.info.epoch == info.epoch);
  CHECK(back.info.step == info.step);
  CHECK(back.info.position == info.position);
  CHECK(back.info.permutation_epoch == info.permutation_epoch);
  CHECK(back.info.seed == info.seed);
  CHECK(back.info.schedule == info.schedule);
  CHECK(back.info.extra == info.extra);
  CHECK_FALSE(back.info.library_version.empty());
  REQUIRE(back.tensors.size() == 3);
  for (const auto& [name, tensor] : example_tensors()) {
    CHECK(back.tensors.at(name).spec() == tensor.spec());
    CHECK(std::ranges::equal(back.tensors.at(name).bytes(), tensor.bytes()));
  }
  io::save_checkpoint(folder / "b", back.tensors, back.info);
  CHECK(content_of(folder / "a") == content_of(folder / "b"));
}

TEST_CASE("a checkpoint cut at any byte is refused", "[io]") {
  const TemporaryFolder folder;
  io::save_checkpoint(folder / "a", example_tensors(), example_info());
  const std::string whole = content_of(folder / "a");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    write_file(folder / "cut", whole.substr(0, bytes));
    CHECK_THROWS_AS(io::load_checkpoint(folder / "cut"), FormatError);
  }
}

TEST_CASE("what is no checkpoint is refused", "[io]") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& metadata) {
    io::write_safetensors(folder / "a", {}, {{"concord.checkpoint", metadata}});
    return message_of<FormatError>([&] { (void)io::load_checkpoint(folder / "a"); });
  };
  CHECK(contains(refusal("{"), "concord.checkpoint: is not JSON from its byte 2 on; the checkpoint is damaged"));
  CHECK(contains(refusal("[]"), "concord.checkpoint: is not a JSON object"));
  CHECK(contains(refusal("{}"), "concord.checkpoint: has no \"format\""));
  CHECK(contains(refusal(R"({"format":99})"), "checkpoint format 99; this version of Concord reads 1"));
  CHECK(contains(refusal(R"({"format":1,"network":7})"), "concord.checkpoint: \"network\" is of another type"));
  for (const char* number : {"1e300", "0.5", "true", "4294967296", "-4294967296"}) {
    CHECK(contains(refusal(R"({"format":)" + std::string(number) + "}"), "not an integer in the range of its type"));
  }
  io::save_weights(folder / "a", example_tensors());
  CHECK(contains(message_of<FormatError>([&] { (void)io::load_checkpoint(folder / "a"); }), "not a checkpoint"));

  io::CheckpointInfo info = example_info();
  info.step = -1;
  io::save_checkpoint(folder / "a", {}, info);
  CHECK(contains(message_of<FormatError>([&] { (void)io::load_checkpoint(folder / "a"); }), "one is negative"));
}

TEST_CASE("tensors of another network are listed", "[io]") {
  io::TensorMap tensors = example_tensors();
  tensors.erase("random.state");
  CHECK_NOTHROW(io::check_tensors(tensors, kNetwork, "file"));

  tensors["fc.weight"] = Tensor(DType::f32, {3, 2});
  tensors["extra"] = Tensor(DType::f32, {1});
  std::map<std::string, TensorSpec> expected = kNetwork;
  for (const char* name : {"c1", "c2", "c3", "c4", "c5", "c6"}) expected[name] = {DType::f32, {1}};
  CHECK(message_of<FormatError>([&] { io::check_tensors(tensors, expected, "file: checkpoint of another network"); }) ==
        "file: checkpoint of another network: 6 missing (c1, c2, c3, c4, c5, ...), 1 unexpected (extra), "
        "1 of another shape (fc.weight: expected f32 [2, 2], got f32 [3, 2])");
}

TEST_CASE("weights are taken from weights files and checkpoints", "[io]") {
  const TemporaryFolder folder;
  io::TensorMap weights = example_tensors();
  weights.erase("random.state");
  io::save_weights(folder / "weights", weights);
  CHECK(io::load_weights(folder / "weights", kNetwork).at("fc.weight").values<float>()[3] == 4.0f);
  CHECK_THROWS_AS(io::load_checkpoint(folder / "weights"), FormatError);

  io::save_checkpoint(folder / "checkpoint", example_tensors(), example_info());
  CHECK(io::load_weights(folder / "checkpoint", kNetwork).size() == 2);

  io::save_weights(folder / "more", example_tensors());
  CHECK(contains(message_of<FormatError>([&] { (void)io::load_weights(folder / "more", kNetwork); }),
                 "more: weights of another network: 1 unexpected (random.state)"));
}

TEST_CASE("PyTorch's batch counters are skipped", "[io]") {
  const TemporaryFolder folder;
  const std::string header = R"({"bn.num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                             R"("bn.running_mean":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})";
  write_file(folder / "a",
             std::string{static_cast<char>(header.size())} + std::string(7, '\0') + header + std::string(12, '\0'));
  CHECK(io::load_weights(folder / "a", {{"bn.running_mean", {DType::f32, {1}}}}).size() == 1);
}
