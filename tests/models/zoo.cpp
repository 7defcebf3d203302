// The zoo: names, shapes and numbers of parameters equal those of the same networks in PyTorch.
#include "concord/models/zoo.hpp"

#include <set>

#include "goldens.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// What `all` has and `some` lacks.
std::string missing(const std::set<std::string>& all, const std::set<std::string>& some) {
  std::string text;
  for (const std::string& name : all) text += some.contains(name) ? "" : name + "\n";
  return text;
}

}  // namespace

TEST_CASE("networks have PyTorch's parameters, by name and shape", "[models]") {
  const nlohmann::json recorded = golden("zoo.json");
  for (const models::Model& model : models::all()) {
    INFO(model.name);
    Graph graph;
    const auto network = models::make(model.name);
    const Value output = (*network)(graph.input("x", models::batch_of(model, 2)));
    if (model.task == models::Task::classification) CHECK(output.shape() == Shape{2, model.classes});
    std::set<std::string> state, recorded_state;
    std::int64_t parameters = 0;
    for (const VariablePtr& variable : graph.variables()) {
      if (variable->name != "random.state") state.insert(variable->name + " " + variable->spec.shape.str());
      if (variable->trainable) parameters += variable->spec.shape.elements();
    }
    const nlohmann::json& expected = recorded.at(std::string(model.name));
    for (const auto& [name, dims] : expected.at("state").items()) {
      recorded_state.insert(name + " " + Shape(dims.get<std::vector<std::int64_t>>()).str());
    }
    CHECK(missing(recorded_state, state) == "");
    CHECK(missing(state, recorded_state) == "");
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

TEST_CASE("a network can have other sizes, by name", "[models]") {
  const models::Model& mlp = models::find("mlp:depth=3,width=64");
  CHECK(mlp.name == "mlp:depth=3,width=64");
  CHECK(mlp.parameters == 784 * 64 + 64 + 2 * (64 * 64 + 64) + 64 * 10 + 10);
  CHECK(&models::find("mlp:depth=3,width=64") == &mlp);
  CHECK(models::find("mlp:depth=1").parameters == models::find("mlp").parameters);
  CHECK(models::find("resnet20:depth=5").parameters > models::find("resnet20").parameters);
  CHECK(models::find("gpt_tiny:length=256,depth=1").input == Shape{256});
  const models::Model& lstm = models::find("lstm:length=5,width=32");
  CHECK(lstm.input == Shape{5, 512});
  Graph graph;
  CHECK((*models::make(lstm.name))(graph.input("x", models::batch_of(lstm, 2))).shape() == Shape{2, 1000});

  CHECK_THROWS_WITH(models::find("mlp:deep=3"), contains("no size 'deep'") && contains("depth (hidden layers"));
  for (const char* name :
       {"mlp:depth=0", "mlp:depth=-1", "mlp:depth=many", "mlp:depth=", "mlp:depth", "mlp:depth=2x"}) {
    CHECK_THROWS_WITH(models::find(name), contains("depth=NUMBER"));
  }
  CHECK_THROWS_AS(models::find("mlp:"), ArgumentError);
  CHECK_THROWS_AS(models::find("mlp:depth=2,"), ArgumentError);
  CHECK_THROWS_WITH(models::find("vgg11:depth=3"), contains("vgg11 has one size only"));
  CHECK_THROWS_WITH(models::find("perceptron:depth=3"), contains("no network 'perceptron'. There are mlp, lenet"));
  CHECK_THROWS_WITH(models::find("resnet80"), contains("no network 'resnet80'; did you mean resnet20? There are"));
  CHECK_THROWS_WITH(models::find("lenett"), contains("did you mean lenet?"));
  CHECK_THROWS_WITH(models::find("vgg_19"), contains("did you mean vgg19?"));
  CHECK_THROWS_WITH(models::find("gpt_tiny:width=130"), contains("equal heads"));
}
