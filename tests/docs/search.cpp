// The program of docs/guide/search.md.
#include <cmath>
#include <string>

#include "concord/core/philox.hpp"

#include "guide_test.hpp"

namespace concord {
namespace {

/// Two classes: points inside and outside a circle.
Dataset disc(std::int64_t samples) {
  Dataset data;
  std::vector<float> points;
  std::vector<std::int32_t> labels;
  const Philox random(1, philox_purpose("disc"));
  for (std::int64_t i = 0; i < samples; ++i) {
    const float x = 2 * random.uniform(static_cast<std::uint64_t>(2 * i)) - 1;
    const float y = 2 * random.uniform(static_cast<std::uint64_t>(2 * i + 1)) - 1;
    points.insert(points.end(), {x, y});
    labels.push_back(x * x + y * y < 0.6F ? 1 : 0);
  }
  data.features = Tensor::of<float>(Shape{samples, 2}, points);
  data.labels = Tensor::of<std::int32_t>(Shape{samples}, labels);
  return data;
}

}  // namespace

TEST_CASE("guide: a search in a program", "[docs]") {
  const DevicePtr device = test::guide_device();
  const Dataset train = disc(400), validation = disc(100);
  // [search]
  const search::Space space = search::Space::parse("lr=log(1e-4,1e-1) width=[4,32]");
  const auto scheduler = search::make_scheduler(space, {.kind = search::SchedulerKind::tpe, .trials = 12});
  double best_loss = INFINITY;
  search::Settings best;
  while (const auto job = scheduler->next()) {
    const double lr = std::stod(job->settings[0].value);
    const int width = std::stoi(job->settings[1].value);
    nn::Sequential net{nn::Linear{2, width}, nn::ReLU{}, nn::Linear{width, 2}};
    Trainer trainer{net, loss::cross_entropy, optim::Adam{.lr = lr}, device};
    trainer.fit(train, {.epochs = 5, .batch = 50});
    const double loss = trainer.evaluate(validation).loss;
    scheduler->report(*job, loss);
    if (loss < best_loss) {
      best_loss = loss;
      best = job->settings;
    }
  }
  // [end]
  CHECK(best.size() == 2);
  CHECK(best_loss < 0.6);
}

}  // namespace concord
