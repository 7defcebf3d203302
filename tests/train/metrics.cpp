// Metrics: hits counted on the device against a sort on the host; the confusion matrix.
#include "concord/train/metrics.hpp"

#include <cmath>

#include "concord_test.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

double count_of(const Tensor& hits) {
  return static_cast<double>(hits.values<float>()[0]) +
         static_cast<double>(kHitUnit) * static_cast<double>(hits.values<float>()[1]);
}

std::pair<double, double> hits_of(const DevicePtr& device, const Tensor& logits, const Tensor& labels, int k) {
  Graph graph;
  const Hits hits = count_hits(graph.input("logits", logits.spec()), graph.input("labels", labels.spec()), k);
  Program program = compile(graph, {{hits.first, hits.among_k}}, std::make_shared<Variables>(device, 0));
  program.write("logits", logits);
  program.write("labels", labels);
  program.run();
  return {count_of(program.read(hits.first)), count_of(program.read(hits.among_k))};
}

}  // namespace

TEST_CASE("hits are labels with few larger logits", "[train]") {
  const Tensor logits = Tensor::of<float>(Shape{5, 4}, std::vector<float>{0.1F, 0.4F,     0.3F, 0.2F,  //
                                                                          5,    5,        5,    5,  // ties: lower first
                                                                          -1,   -2,       -3,   -4,  //
                                                                          NAN,  1,        2,    3,   //
                                                                          1,    INFINITY, 0,    0});
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto count = [&](std::vector<std::int32_t> labels, int k) {
      return hits_of(device, logits, Tensor::of<std::int32_t>(Shape{5}, labels), k);
    };
    CHECK(count({1, 0, 0, 3, 1}, 2) == std::pair(4.0, 4.0));  // the last one's own logit is not finite
    CHECK(count({2, 1, 1, 0, 0}, 2) == std::pair(0.0, 4.0));  // NaN is no hit
    CHECK(count({0, 3, 3, 1, 3}, 3) == std::pair(0.0, 1.0));
    CHECK(count({0, 3, 3, 1, 3}, 4) == std::pair(0.0, 5.0));
  }
}

TEST_CASE("hits are counted exactly above 2^24 labels", "[train]") {
  const Shape labels{3, 5592407};  // 16777221 in all: no number of single precision
  REQUIRE(most_hits(labels) < 1 << 24);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto hits = hits_of(device, Tensor(DType::f32, Shape{3, 5592407, 1}), Tensor(DType::i32, labels), 1);
    CHECK(hits == std::pair(16777221.0, 16777221.0));
  }
}

TEST_CASE("evaluations of sets that leave as many samples over do not share them", "[train]") {
  const Dataset data = small_data(50);
  const Dataset first = data::slice(data, 0, 18), second = data::slice(data, 18, 26), third = data::slice(data, 44, 6);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto trainer = [&] { return Trainer(small_net(), loss::cross_entropy, optim::Sgd{.lr = 0.1}, device); };
    Trainer all = trainer();
    for (const Dataset& part : {second, first, third}) {  // each leaves 2 of a batch of 8, or of 4
      for (const std::int64_t batch : {8, 4}) {
        Trainer alone = trainer();
        CHECK(all.evaluate(part, {.batch = batch}).loss == alone.evaluate(part, {.batch = batch}).loss);
      }
    }
  }
}

TEST_CASE("an evaluation in many batches counts as one in a single batch", "[train]") {
  const Dataset data = small_data(1100);
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer trainer = small_trainer(device);
    const Metrics whole = trainer.evaluate(data, {.batch = 1100, .k = 2});
    const Metrics parts = trainer.evaluate(data, {.batch = 1, .k = 2});
    CHECK(parts.accuracy == whole.accuracy);
    CHECK(parts.top_k == whole.top_k);
    CHECK(parts.loss == Approx(whole.loss).epsilon(1e-5));
  }
}

TEST_CASE("the confusion matrix counts label by prediction", "[train]") {
  const Tensor outputs = Tensor::of<float>(Shape{4, 2}, std::vector<float>{1, 0, 0, 1, 1, 0, 0, 1});
  const Tensor counts =
      confusion_matrix(outputs, Tensor::of<std::int32_t>(Shape{4}, std::vector<std::int32_t>{0, 0, 0, 1}));
  const auto cells = counts.values<std::int32_t>();
  CHECK(std::vector<std::int32_t>(cells.begin(), cells.end()) == std::vector<std::int32_t>{2, 1, 0, 1});
  CHECK_THROWS_AS(confusion_matrix(outputs, Tensor(DType::i32, Shape{3})), ShapeError);
  CHECK_THROWS_AS(confusion_matrix(outputs, Tensor::of<std::int32_t>(Shape{4}, std::vector<std::int32_t>{0, 2, 0, 1})),
                  ArgumentError);
}
