// Whole networks that are given no samples.
#include "concord_test.hpp"

namespace concord::test {
namespace {

TEST_CASE("every network of the zoo takes a batch of no samples in evaluation", "[ops][empty]") {
  for (const models::Model& model : models::all()) {
    INFO(model.name);
    Graph graph;
    graph.set_training(false);
    const auto network = models::make(model.name, {.input = model.least});
    const Shape some = (*network)(graph.input("some", models::batch_of(model, model.least, 2))).shape();
    const Shape none = (*network)(graph.input("none", models::batch_of(model, model.least, 0))).shape();
    REQUIRE(none.rank() == some.rank());
    for (std::int64_t axis = 1; axis < static_cast<std::int64_t>(some.rank()); ++axis) CHECK(none[axis] == some[axis]);
    CHECK(none.elements() == 0);
  }
}

TEST_CASE("networks run on no samples", "[ops][empty]") {
  for (const DevicePtr& device : devices()) {
    for (const std::string name : {"lenet", "resnet20", "char_lstm", "gpt_tiny"}) {
      INFO(name << " on " << device->info().id);
      const models::Model& model = models::find(name);
      Graph graph;
      graph.set_training(false);
      const Value x = graph.input("x", models::batch_of(model, model.least, 0));
      const Value y = (*models::make(name, {.input = model.least}))(x);
      Program program = compile(graph, y, std::make_shared<Variables>(device, 1));
      program.write("x", Tensor(x.dtype(), x.shape()));
      program.run();
      CHECK(program.read(y).shape() == y.shape());
    }
  }
}

}  // namespace
}  // namespace concord::test
