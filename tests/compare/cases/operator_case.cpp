// Cases: a file gives back what was written, a replay finds the wrong operator alone, damage is told.
#include "concord/compare/cases/operator_case.hpp"

#include "compare/wrong_device.hpp"
#include "concord/compare/run/batches.hpp"
#include "concord/compare/run/training_step.hpp"
#include "files.hpp"
#include "train/small_training.hpp"

namespace concord::test {
namespace {

const CompareOptions kOptions{.steps = 1, .batch = 10, .seed = 3, .seconds = 0.001};

DevicePtr wrong(const char* op) {
  return wrong_device(devices().front(), "wrong", [op](const Operator& o) { return o.name() == op; });
}

Comparison comparison(const DevicePtr& other, const CompareOptions& options = kOptions) {
  nn::Sequential network = small_net();
  const std::vector<DevicePtr> list{devices().front(), other};
  return compare(network, "small", loss::cross_entropy, optim::Sgd{}, small_data(25), list, options);
}

std::unique_ptr<TrainingStep> small_step() {
  nn::Sequential network = small_net();
  const Dataset data = small_data(25);
  const Batches batches(data, kOptions.batch, kOptions.seed);
  return std::make_unique<TrainingStep>(network, loss::cross_entropy, optim::Sgd{}, optim::MinimizeOptions{},
                                        Precision::fp32, batches.source(), batches.batch());
}

CaseReplay replayed(const OperatorCase& operator_case, const DevicePtr& device) {
  const std::unique_ptr<TrainingStep> step = small_step();
  return replay(operator_case, step->graph, step->loss, device, Precision::fp32);
}

}  // namespace

TEST_CASE("the case of a diverging operator diverges alone on its device, and on no other", "[compare]") {
  for (const char* const op : {"relu", "relu_backward"}) {
    INFO(op);
    const Comparison result = comparison(wrong(op));
    CHECK_FALSE(result.runs[0].kept_case);
    REQUIRE(result.runs[1].kept_case);
    const OperatorCase& kept = *result.runs[1].kept_case;
    CHECK(kept.op == op);
    CHECK(kept.node == result.runs[1].first_deviation->node);
    CHECK(kept.results.size() == kept.outputs.size());

    const CaseReplay again = replayed(kept, wrong(op));
    CHECK(again.diverges());
    REQUIRE(again.results.size() == 1);
    CHECK(again.results[0].error == Approx(result.runs[1].first_deviation->error));
    CHECK(again.results[0].case_error == again.results[0].error);
    CHECK(again.results[0].from_case == 0);
    for (const DevicePtr& right : devices()) {
      INFO(right->info().id);
      CHECK_FALSE(replayed(kept, right).diverges());
    }
  }
}

TEST_CASE("a case of any node can be asked for, with the weights it reads", "[compare]") {
  CompareOptions options = kOptions;
  options.case_node = "0/matmul";
  const Comparison result = comparison(devices().back(), options);
  REQUIRE(result.runs[1].kept_case);
  const OperatorCase& kept = *result.runs[1].kept_case;
  CHECK_FALSE(kept.fused);
  CHECK(kept.inputs.contains("0.weight"));
  const CaseReplay again = replayed(kept, devices().back());
  CHECK_FALSE(again.diverges());
  CHECK(again.results[0].from_case == 0);
  options.case_node = "no/such";
  CHECK_THAT(message_of<ArgumentError>([&] { (void)comparison(devices().back(), options); }),
             contains("'no/such'") && contains("0/matmul"));
}

TEST_CASE("a file gives back the case", "[compare]") {
  const TemporaryFolder folder;
  const auto path = folder / "case.safetensors";
  OperatorCase written = *comparison(wrong("relu")).runs[1].kept_case;
  written.network = {{"model", "small"}, {"batch", "10"}};
  written.tolerances[0] = INFINITY;
  write_case(path, written);
  const OperatorCase read = read_case(path);
  CHECK(read.node == written.node);
  CHECK(read.op == written.op);
  CHECK(read.attributes == written.attributes);
  CHECK(read.fused == written.fused);
  CHECK(read.device == written.device);
  CHECK(read.kernel == written.kernel);
  CHECK(read.outputs == written.outputs);
  CHECK(read.tolerances == written.tolerances);
  CHECK(read.network == written.network);
  REQUIRE(read.inputs.size() == written.inputs.size());
  for (const auto& [name, tensor] : written.inputs) {
    CHECK(std::ranges::equal(read.inputs.at(name).bytes(), tensor.bytes()));
  }
  CHECK(std::ranges::equal(read.expected[0].bytes(), written.expected[0].bytes()));
  CHECK(std::ranges::equal(read.results[0].bytes(), written.results[0].bytes()));
}

TEST_CASE("a case whose tensors are not the operator's is refused", "[compare]") {
  const DevicePtr& device = devices().front();
  const OperatorCase whole = *comparison(wrong("relu")).runs[1].kept_case;
  const auto refusal = [&](const OperatorCase& damaged) {
    return message_of<FormatError>([&] { (void)replayed(damaged, device); });
  };
  OperatorCase incomplete = whole;
  incomplete.inputs.clear();
  CHECK_THAT(refusal(incomplete), contains("has no input '0/add', which relu reads"));
  for (std::vector<Tensor> OperatorCase::*const kept : {&OperatorCase::expected, &OperatorCase::results}) {
    OperatorCase other_shape = whole, other_type = whole;
    (other_shape.*kept)[0] = Tensor(DType::f32, Shape{1});
    (other_type.*kept)[0] = Tensor(DType::i32, (whole.*kept)[0].shape());
    CHECK_THAT(refusal(other_shape), contains("is f32 [1], but relu computes f32"));
    CHECK_THAT(refusal(other_type), contains("is i32"));
  }
  OperatorCase none = whole;
  none.outputs.clear();
  CHECK_THAT(refusal(none), contains("0 results, but relu computes 1"));
  OperatorCase large = whole;
  for (auto& [name, tensor] : large.inputs) tensor = Tensor(DType::f32, Shape{1 << 20});
  CHECK_THAT(message_of<ShapeError>([&] { (void)replayed(large, device); }), contains("got f32 [1048576]"));
}

TEST_CASE("what is not a case, or of another network, is refused", "[compare]") {
  const TemporaryFolder folder;
  const auto path = folder / "case.safetensors";
  const io::TensorMap some{{"input/x", Tensor(DType::f32, Shape{1})}};
  const auto refusal = [&](const std::map<std::string, std::string>& metadata) {
    io::write_safetensors(path, some, metadata);
    return message_of<FormatError>([&] { (void)read_case(path); });
  };
  CHECK_THAT(refusal({}), contains("is not a case"));
  CHECK_THAT(refusal({{"concord.case", "{"}}), contains("damaged, byte 1: is not JSON from here on"));
  CHECK_THAT(refusal({{"concord.case", R"({"version": 1})"}}), contains("damaged: has no \"node\""));
  CHECK_THAT(refusal({{"concord.case", R"({"version": 99})"}}), contains("version 99"));
  CHECK_THAT(refusal({{"concord.case",
                       R"({"version": 1, "node": "n", "operator": "relu", "attributes": "", "fused": false,
                           "device": "cpu", "kernel": "k", "outputs": ["y"], "tolerances": [0.5], "network": {}})"}}),
             contains("no tensor 'expected/y'"));
  CHECK_THROWS_AS(read_case(folder / "missing"), IoError);

  OperatorCase other = *comparison(wrong("relu")).runs[1].kept_case;
  other.node = "no/such";
  CHECK_THAT(message_of<ArgumentError>([&] { (void)replayed(other, devices().front()); }),
             contains("no operator 'no/such' (relu)"));
}

}  // namespace concord::test
