// Grid sample against recorded PyTorch: every set of options, with both gradients.
#include "concord/ops/grid_sample.hpp"

#include <limits>
#include <map>

#include "concord/ops/elementary.hpp"
#include "goldens.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

GridSampleOptions options_of(const nlohmann::json& row) {
  const std::map<std::string, GridInterpolation> modes{{"bilinear", GridInterpolation::bilinear},
                                                       {"nearest", GridInterpolation::nearest},
                                                       {"bicubic", GridInterpolation::bicubic}};
  const std::map<std::string, GridPadding> paddings{
      {"zeros", GridPadding::zeros}, {"border", GridPadding::border}, {"reflection", GridPadding::reflection}};
  return {.mode = modes.at(row["mode"].get<std::string>()),
          .padding = paddings.at(row["padding"].get<std::string>()),
          .align_corners = row["align"].get<bool>()};
}

TEST_CASE("grid_sample and its gradients are PyTorch's", "[ops][grid_sample]") {
  const nlohmann::json file = golden("grid_sample.json");
  const auto tensor = [&](const std::string& name) {
    return tensor_of(Shape(file[name + "_shape"].get<std::vector<std::int64_t>>()), file[name]);
  };
  REQUIRE(file["cases"].size() == 30);
  for (const DevicePtr& device : devices()) {
    Graph graph;
    std::map<std::string, Value> inputs;
    for (const std::string name : {"x2", "grid2", "x3", "grid3"}) {
      inputs.emplace(name, graph.input(name, tensor(name).spec()));
    }
    std::vector<Value> outputs;
    for (const nlohmann::json& row : file["cases"]) {
      const std::string rank = std::to_string(row["rank"].get<int>());
      const Value x = inputs.at("x" + rank), grid = inputs.at("grid" + rank);
      const Value y = grid_sample(x, grid, options_of(row));
      const Value places = cast(iota(graph, y.shape().elements()), DType::f32);
      outputs.push_back(y);
      for (const Value& slope : gradient(sum(y * reshape(sin(places * 1.3F + 0.5F), y.shape())), {x, grid})) {
        outputs.push_back(slope);
      }
    }
    Program program = compile(graph, outputs, std::make_shared<Variables>(device, 1));
    for (const auto& [name, value] : inputs) program.write(name, tensor(name));
    program.run();
    std::size_t next = 0;
    for (const nlohmann::json& row : file["cases"]) {
      INFO(row["rank"] << " " << row["mode"] << " " << row["padding"] << " " << row["align"] << " on "
                       << device->info().id);
      CHECK(difference(program.read(outputs[next++]), row["y"]) < 4e-6);
      CHECK(difference(program.read(outputs[next++]), row["by_x"]) < 4e-6);
      CHECK(difference(program.read(outputs[next++]), row["by_grid"]) < 2e-5);
    }
  }
}

TEST_CASE("a place outside reads 0, whatever the image holds and how far away it is", "[ops][grid_sample]") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Input image{Array({1, 1, 2, 2}, {nan, inf, nan, 5})}, places{Array({1, 1, 3, 2}, {3, 0, inf, -inf, 1, 1})};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto results = run(device, {image, places}, [](const std::vector<Value>& in) {
      const Value y = grid_sample(in[0], in[1], {.align_corners = true});
      return std::vector{slice(y, 3, 0, 2), gradient(sum(slice(y, 3, 0, 2)), in).front()};
    });
    CHECK(to_array(results[0]).values == std::vector<double>{0, 0});
    CHECK(to_array(results[1]).values == std::vector<double>{0, 0, 0, 0});
  }
}

TEST_CASE("grid_sample has the same bits in every run", "[ops][grid_sample]") {
  // Many places read one pixel, whose gradient is a sum of all of them.
  const Input image{normal({2, 3, 3, 3}, 1)}, places{uniform({2, 20, 20, 2}, 2, -1, 1)};
  for (const DevicePtr& device : devices()) {
    INFO("device " << device->info().id);
    const auto build = [](const std::vector<Value>& in) {
      return gradient(sum(square(grid_sample(in[0], in[1]))), in);
    };
    const auto first = run(device, {image, places}, build), second = run(device, {image, places}, build);
    for (std::size_t k = 0; k < 2; ++k) CHECK(test::difference(first[k], second[k]) == "");
  }
}

TEST_CASE("grid_sample refuses what does not fit", "[ops][grid_sample]") {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 3, 4, 5}}), grid = graph.input("g", {DType::f32, {2, 6, 7, 2}});
  CHECK(grid_sample(x, grid).shape() == Shape{2, 3, 6, 7});
  CHECK_THROWS_AS(grid_sample(x, graph.input("batch", {DType::f32, {1, 6, 7, 2}})), ShapeError);
  CHECK_THROWS_AS(grid_sample(x, graph.input("three", {DType::f32, {2, 6, 7, 3}})), ShapeError);
  const Value volume = graph.input("v", {DType::f32, {1, 1, 2, 2, 2}});
  const Value places = graph.input("p", {DType::f32, {1, 1, 1, 1, 3}});
  CHECK_THROWS_AS(grid_sample(volume, places, {.mode = GridInterpolation::bicubic}), ArgumentError);
  const Value large = graph.input("large", {DType::f32, {256, 1, 256, 256}});
  CHECK_THROWS_AS(grid_sample(large, graph.input("l", {DType::f32, {256, 1, 1, 2}})), NotSupported);
}

}  // namespace
}  // namespace concord::test
