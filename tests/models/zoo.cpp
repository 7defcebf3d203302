// The zoo: names, shapes and numbers of parameters equal those of the same networks in PyTorch.
#include "concord/models/zoo.hpp"

#include "goldens.hpp"

using namespace concord;
using namespace concord::test;

TEST_CASE("networks have PyTorch's parameters, by name and shape", "[models]") {
  const nlohmann::json recorded = golden("zoo.json");
  for (const models::Model& model : models::all()) {
    INFO(model.name);
    Graph graph;
    const auto network = models::make(model.name);
    const Value output = (*network)(graph.input("x", models::batch_of(model, 2)));
    if (model.task == models::Task::classification) CHECK(output.shape() == Shape{2, model.classes});
    std::map<std::string, std::vector<std::int64_t>> state;
    std::int64_t parameters = 0;
    for (const VariablePtr& variable : graph.variables()) {
      const auto shape = variable->spec.shape.dims();
      state[variable->name].assign(shape.begin(), shape.end());
      if (variable->trainable) parameters += variable->spec.shape.elements();
    }
    const nlohmann::json& expected = recorded.at(std::string(model.name));
    CHECK(state == expected.at("state").get<std::map<std::string, std::vector<std::int64_t>>>());
    CHECK(parameters == expected.at("parameters").get<std::int64_t>());
    CHECK(model.parameters == parameters);
  }
}

TEST_CASE("a network can have another number of classes", "[models]") {
  Graph graph;
  const auto network = models::make("mlp", {.classes = 47});
  CHECK((*network)(graph.input("x", {DType::f32, Shape{1, 1, 28, 28}})).shape() == Shape{1, 47});
  CHECK_THROWS_AS(models::make("mlp", {.classes = -1}), ArgumentError);
  CHECK_THROWS_WITH(models::make("alexnat"), contains("alexnet"));
}
