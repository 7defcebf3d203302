// The programs of docs/guide/several-devices.md, model-parallel.md and comparing-devices.md.
#include <fstream>
#include <future>
#include <iostream>

#include "guide_test.hpp"

namespace concord {
namespace {

TEST_CASE("guide: the devices of a machine", "[docs]") {
  // [list]
  for (const DeviceInfo& info : Device::list()) {
    std::cout << info.id << ": " << info.name << ", " << info.memory / (1 << 20) << " MiB\n";
  }
  const DevicePtr device = Device::open("cpu");  // or "auto", "opencl", "opencl:1", "opencl:gpu", "opencl:nvidia"
  // [end]
  CHECK(device->info().id == "cpu");
}

TEST_CASE("guide: one network a device, at the same time", "[docs]") {
  const std::vector<std::string> names{"cpu", "cpu"};
  const Dataset data = data::synthetic(Shape{8}, 3, 300);
  // [side_by_side]
  std::vector<std::future<double>> accuracies;
  for (const std::string& name : names) {  // for example {"opencl:0", "opencl:1"}
    accuracies.push_back(std::async(std::launch::async, [&data, name] {
      nn::Sequential net{nn::Linear{8, 32}, nn::ReLU{}, nn::Linear{32, 3}};  // built here: no module is shared
      Trainer trainer{net, loss::cross_entropy, optim::Adam{}, Device::open(name)};
      trainer.fit(data, {.epochs = 5});
      return trainer.evaluate(data).accuracy.value();
    }));
  }
  for (auto& accuracy : accuracies) std::cout << accuracy.get() << '\n';
  // [end]
}

TEST_CASE("guide: a block of one's own that can be divided", "[docs]") {
  // [own_block]
  struct FeedForward : nn::Module {
    nn::Linear first{64, 256}, second{256, 64};
    Value forward(Value x) override { return second.row_parallel(gelu(first.column_parallel(x))); }
    Children children() override { return {{"first", &first}, {"second", &second}}; }
  };
  // [end]
  Graph graph;
  FeedForward block;
  CHECK(block(graph.input("x", {DType::f32, Shape{2, 5, 64}})).shape() == Shape{2, 5, 64});
}

TEST_CASE("guide: two devices are compared", "[docs]") {
  const test::InEmptyFolder folder;
  const std::vector<DevicePtr> devices{Device::open("cpu")};
  // [compare]
  nn::Sequential net{nn::Linear{8, 32}, nn::ReLU{}, nn::Linear{32, 3}};
  const Dataset data = data::synthetic(Shape{8}, 3, 256);
  const Comparison result = compare(net, "my network", loss::cross_entropy, optim::Adam{.lr = 1e-2}, data, devices,
                                    {.steps = 20, .batch = 16, .seconds = 0.2, .reference = Reference::float64});
  std::cout << result.table();
  std::ofstream("report.html") << result.html();
  if (!result.agrees()) std::cout << result.disagreement() << '\n';
  // [end]
  CHECK(result.agrees());
  CHECK(test::content_of("report.html").find("my network") != std::string::npos);
}

}  // namespace
}  // namespace concord
