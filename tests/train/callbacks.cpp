// What listens to a training: reports in order, the progress printer, the JSON log.
#include <nlohmann/json.hpp>
#include <sstream>

#include "concord/train/json_log.hpp"
#include "concord/train/progress.hpp"
#include "files.hpp"
#include "train/small_training.hpp"

using namespace concord;
using namespace concord::test;

namespace {

struct Listener : Callback {
  std::vector<std::string> events;
  void on_begin(TrainingControl& /*training*/) override { events.emplace_back("begin"); }
  void on_step(const StepReport& report) override { events.push_back("step " + std::to_string(report.batch)); }
  void on_epoch(const EpochReport& report) override { events.push_back("epoch " + std::to_string(report.epoch)); }
  void on_end(const History&) override { events.push_back("end"); }
};

EpochReport report_of(std::int64_t epoch) {
  EpochReport report;
  report.epoch = epoch;
  report.epochs = 5;
  report.steps = 100 * epoch;
  report.loss = 0.5;
  report.validation =
      Metrics{.loss = 0.25, .accuracy = 0.875, .top_k = 1, .k = 5, .samples = 16, .named = {{"own", 0.0625}}};
  return report;
}

}  // namespace

TEST_CASE("callbacks hear of steps, epochs and the end", "[train]") {
  Trainer trainer{nn::Sequential{nn::Linear{6, 3}}, loss::cross_entropy, optim::Sgd{}, devices().front()};
  const auto listener = std::make_shared<Listener>();
  trainer.fit(data::synthetic(Shape{6}, 3, 50), {.epochs = 2, .batch = 10, .callbacks = {listener}, .report_every = 2});
  CHECK(listener->events ==
        std::vector<std::string>{"begin", "step 2", "step 4", "epoch 1", "step 1", "step 3", "epoch 2", "end"});
}

TEST_CASE("a training that stops within an epoch says the loss until then", "[train]") {
  const auto stopped = [](std::int64_t report_every) {
    Trainer trainer = small_trainer(devices().front());
    return trainer.fit(small_data(50), {.batch = 10, .report_every = report_every, .max_steps = 3}).stopped_loss;
  };
  REQUIRE(stopped(1).has_value());
  CHECK(stopped(1) == stopped(1000));
  CHECK_FALSE(small_trainer(devices().front()).fit(small_data(50), {.batch = 10}).stopped_loss.has_value());
}

TEST_CASE("progress is plain lines in a file and a bar on a terminal", "[train]") {
  std::ostringstream plain;
  ProgressPrinter lines(plain, std::nullopt);
  lines.on_step({1, 5, 10, 20, 0.5, 100});
  lines.on_epoch(report_of(1));
  lines.on_end({});
  CHECK(plain.str().starts_with("epoch 1/5  loss 0.5000  validation loss 0.2500  accuracy 87.50 %  own 0.0625  "));
  CHECK(plain.str().find('\r') == std::string::npos);
  CHECK(std::ranges::count(plain.str(), '\n') == 1);
  lines.on_step({2, 5, 3, 20, 0.25, 100});
  lines.on_end({.epochs = {}, .end = History::End::stopped, .stopped_loss = 0.25});
  CHECK(plain.str().ends_with("\nstopped within an epoch, loss 0.2500\n"));

  for (const int width : {10, 40, 80, 200}) {
    std::ostringstream terminal;
    ProgressPrinter bar(terminal, width);
    bar.on_step({1, 5, 10, 20, 0.5, 100});
    const std::string shown = terminal.str();
    CHECK(shown.size() - shown.rfind('\r') - 1 < static_cast<std::size_t>(width));
    CHECK(shown.find('\n') == std::string::npos);
  }
}

TEST_CASE("the JSON log has a line for each epoch", "[train]") {
  const TemporaryFolder folder;
  {
    JsonLog log(folder / "log.jsonl");
    log.on_epoch(report_of(1));
    log.on_epoch(report_of(2));
    log.on_end({.epochs = {}, .end = History::End::early});
  }
  std::istringstream lines(content_of(folder / "log.jsonl"));
  std::vector<nlohmann::json> read;
  for (std::string line; std::getline(lines, line);) read.push_back(nlohmann::json::parse(line));
  REQUIRE(read.size() == 3);
  CHECK(read[1].at("epoch") == 2);
  CHECK(read[1].at("validation").at("accuracy") == 0.875);
  CHECK(read[1].at("validation").at("metrics").at("own") == 0.0625);
  CHECK(read[2].at("reason") == "early");
  CHECK_THROWS_AS(JsonLog(folder / "missing" / "log.jsonl"), IoError);
}
