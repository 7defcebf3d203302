// group_updates(): which updates become one operator, where it runs, and that nothing else changes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compile/fake_device.hpp"
#include "concord/compile/program.hpp"
#include "concord/ops/pointwise_group.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::test {
namespace {

using Names = std::vector<std::string>;
using Reach = ops::PointwiseGroup::Reach;

Lowered grouped(const Graph& graph, std::span<const Value> outputs = {}) {
  Lowered program = lower(graph, outputs, false);
  group_updates(program);
  CHECK(in_order(program));
  return program;
}

const ops::PointwiseGroup& group_of(const LoweredNode& node) {
  const auto* op = dynamic_cast<const ops::PointwiseGroup*>(node.op.get());
  REQUIRE(op != nullptr);
  return *op;
}

Value gradient_of(Graph& graph, const std::string& name, const Shape& shape) {
  return pointwise("loss", {graph.input("d" + name, {DType::f32, shape})}, scalar::input(0) * 2.0F);
}

/// weight − rate·gradient, and the gradient kept; both assigned.
void update(Value weight, Value gradient, Value rate) {
  Graph& graph = weight.graph();
  const Value kept = variable(graph, weight.name() + ".kept", weight.spec());
  const std::vector<Value> results =
      pointwise("sgd", {weight, rate, gradient, kept},
                {scalar::input(0) - scalar::input(1) * scalar::input(2), scalar::input(2) + scalar::input(3)},
                {DType::f32, DType::f32}, weight.shape());
  graph.assign(weight, results[0]);
  graph.assign(kept, results[1]);
}

const Shape kBig{600, 600};  // more than may wait while others work

}  // namespace

TEST_CASE("updates by one formula become one operator", "[compile][group]") {
  Graph graph;
  const Value rate = graph.input("rate", {DType::f32, {}});
  std::vector<Value> weights, gradients;
  for (const Shape& shape : {Shape{4, 4}, Shape{3}, kBig, Shape{2, 1, 2}}) {
    const std::string name = fmt::format("w{}", weights.size());
    weights.push_back(variable(graph, name, {DType::f32, shape}));
    gradients.push_back(gradient_of(graph, name, shape));
  }
  for (std::size_t i = 0; i < weights.size(); ++i) update(weights[i], gradients[i], rate);
  const Lowered program = grouped(graph);
  CHECK(operators_of(program) == Names{"loss", "loss of 3", "sgd of 4"});
  const LoweredNode& node = program.nodes.back();
  const ops::PointwiseGroup& group = group_of(node);
  CHECK(std::vector<Reach>(group.reach().begin(), group.reach().end()) ==
        std::vector{Reach::whole, Reach::shared, Reach::whole, Reach::whole});
  CHECK(node.inputs.size() == 1 + 4 * 3);
  CHECK(node.outputs.size() == 8);
  CHECK(program.value(node.inputs[0]).name == "rate");
  CHECK(program.value(node.inputs[group.place_of(2, 0)]).name == "w2");
  CHECK(program.value(node.inputs[group.place_of(3, 3)]).name == "w3.kept");
  const std::vector<TensorSpec> results = group.infer(program.specs(node.inputs));
  CHECK(results[4].shape == kBig);
  CHECK(results[7].shape == Shape{2, 1, 2});
  CHECK(group.in_place(group.place_of(2, 0), 4));
  CHECK(group.in_place(group.place_of(2, 0), 5));
  CHECK_FALSE(group.in_place(group.place_of(2, 0), 6));
  CHECK_FALSE(group.in_place(0, 0));
  CHECK(group.cost(program.specs(node.inputs), results).flops == 3.0 * (16 + 3 + 360000 + 4));
}

TEST_CASE("a group computes what its members did", "[compile][group]") {
  Graph graph;
  const Value rate = graph.input("rate", {DType::f32, {}});
  std::map<std::string, float> given{{"rate", 0.5F}};
  for (const char* name : {"a", "b", "c"}) {
    const Value weight = variable(graph, name, {DType::f32, {4}});
    update(weight, gradient_of(graph, name, {4}), rate);
    for (const auto& [value, number] : {std::pair{"", 1.0F}, {".kept", 2.0F}}) {
      given.emplace(std::string(name) + value, number + static_cast<float>(name[0]));
    }
    given.emplace(std::string("d") + name, static_cast<float>(name[0]) * 3);
  }
  const Lowered plain = lower(graph, {}, false);
  CHECK(evaluate(grouped(graph), given) == evaluate(plain, given));
}

TEST_CASE("what differs in more than its tensors stays apart", "[compile][group]") {
  Graph graph;
  const Value rate = graph.input("rate", {DType::f32, {}});
  const Value a = variable(graph, "a"), b = variable(graph, "b"), c = variable(graph, "c"), d = variable(graph, "d");
  const Value row = graph.input("row", {DType::f32, {4}});
  graph.assign(a, pointwise("sgd", {a, rate}, scalar::input(0) - scalar::input(1)));
  graph.assign(b, pointwise("sgd", {b, rate}, scalar::input(0) + scalar::input(1)));     // another formula
  graph.assign(c, pointwise("sgd", {c, row}, scalar::input(0) - scalar::input(1)));      // an operand that is broadcast
  const Value shown = pointwise("sgd", {d, rate}, scalar::input(0) - scalar::input(1));  // an output of the program
  graph.assign(d, shown);
  CHECK(operators_of(grouped(graph, std::vector{shown})) == Names{"sgd", "sgd", "sgd", "sgd"});
}

TEST_CASE("each member may have a number of its own", "[compile][group]") {
  Graph graph;
  for (const char* name : {"a", "b"}) {
    const Value weight = variable(graph, name);
    const Value norm = sum(weight);
    graph.assign(weight, pointwise("lars", {weight, norm}, scalar::input(0) - scalar::input(1)));
  }
  const Lowered program = grouped(graph);
  CHECK(operators_of(program) == Names{"reduce_sum", "reshape", "reduce_sum", "reshape", "lars of 2"});
  CHECK(group_of(program.nodes.back()).reach()[1] == Reach::single);
}

TEST_CASE("who reads an update's result comes after it, and later ones stand apart", "[compile][group]") {
  Graph graph;
  const Value rate = graph.input("rate", {DType::f32, {}});
  const auto step = [&](Value variable) {
    const Value result = pointwise("sgd", {variable, rate}, scalar::input(0) - scalar::input(1));
    graph.assign(variable, result);
    return result;
  };
  std::vector<Value> variables;
  for (const char* name : {"a", "b", "c", "d"}) variables.push_back(variable(graph, name));
  step(variables[0]);
  const Value read = step(variables[1]);
  const Value norm = sum(read);
  step(variables[2]);
  step(variables[3]);
  CHECK(operators_of(grouped(graph, std::vector{norm})) == Names{"sgd of 2", "reduce_sum", "reshape", "sgd of 2"});
}

TEST_CASE("formulas that only updates read wait with them", "[compile][group]") {
  // As running statistics are: two results, each the last operand of a formula that is assigned.
  Graph graph;
  const Value ok = graph.input("ok", {DType::f32, {}});
  std::vector<Value> outputs;
  std::vector<std::array<Value, 2>> updates;
  for (const char* name : {"a", "b", "c"}) {
    const Value mean = variable(graph, name), square = variable(graph, std::string(name) + "2");
    const Value batch = graph.input(std::string("x") + name, mean.spec());
    const std::vector<Value> moved =
        pointwise("moved", {mean, square, batch},
                  {scalar::input(0) + scalar::input(2), scalar::input(1) * scalar::input(2)}, {DType::f32, DType::f32});
    updates.push_back({mean, moved[0]});
    updates.push_back({square, moved[1]});
    if (name[0] == 'c') outputs.push_back(sum(moved[0]));  // somebody waits for this one
  }
  for (const auto& [old, now] : updates) {
    const Scalar newer = scalar::select(scalar::input(0), scalar::input(2), scalar::input(1));
    graph.assign(old, pointwise("keep", {ok, old, now}, newer));
  }
  CHECK(operators_of(grouped(graph, outputs)) == Names{"moved of 2", "moved", "reduce_sum", "reshape", "keep of 6"});
}

TEST_CASE("large values do not wait while others work", "[compile][group]") {
  const auto operators = [](const Shape& shape) {
    Graph graph;
    for (const char* name : {"a", "b"}) {
      const Value weight = variable(graph, name, {DType::f32, shape});
      const Value gradient = gradient_of(graph, name, shape);
      graph.assign(weight, pointwise("sgd", {weight, gradient}, scalar::input(0) - scalar::input(1)));
    }
    return operators_of(grouped(graph));
  };
  CHECK(operators({300}) == Names{"loss", "loss", "sgd of 2"});
  CHECK(operators(kBig) == Names{"loss", "sgd", "loss", "sgd"});
}

TEST_CASE("before an exchange, updates run where their gradients are made and wait for few others",
          "[compile][group]") {
  // The backward pass makes a gradient after the other; what weighs them stands at the end of the graph.
  Graph graph;
  std::vector<Value> gradients;
  Value before = graph.input("x", {DType::f32, {100}});
  for (int i = 0; i < 4; ++i) {
    before = pointwise("grad", {before}, scalar::input(0) * 2.0F);
    gradients.push_back(before);
  }
  const PassScope update_pass(graph, Pass::update);
  for (std::size_t i = 0; i < 4; ++i) {
    const Value taken = variable(graph, fmt::format("exchange{}", i), {DType::f32, {100}});
    graph.assign_early(taken, pointwise("weigh", {gradients[i]}, scalar::input(0) * 0.5F));
  }
  const auto program = [&](std::size_t most_apart) {
    Lowered lowered = lower(graph, {}, false, RunPart::before_exchange);
    hurry_updates(lowered);
    CHECK(in_order(lowered));
    group_updates(lowered, most_apart);
    CHECK(in_order(lowered));
    return operators_of(lowered);
  };
  CHECK(program(0) == Names{"grad", "weigh", "grad", "weigh", "grad", "weigh", "grad", "weigh"});
  CHECK(program(400) == Names{"grad", "grad", "weigh of 2", "grad", "grad", "weigh of 2"});
  CHECK(program(SIZE_MAX) == Names{"grad", "grad", "grad", "grad", "weigh of 4"});
}

TEST_CASE("what needs late variables runs last, in groups of its own", "[compile][group]") {
  // Updates of six weights from sums over ranks; two of these arrive at the end, one after the other.
  Graph graph;
  const Value rate = graph.input("rate", {DType::f32, {}});
  std::vector<Value> sums;
  for (int i = 0; i < 6; ++i) {
    const Value weight = variable(graph, fmt::format("w{}", i), {DType::f32, {100}});
    sums.push_back(variable(graph, fmt::format("sum{}", i), {DType::f32, {100}}));
    graph.assign(weight,
                 pointwise("sgd", {weight, sums.back(), rate}, scalar::input(0) - scalar::input(2) * scalar::input(1)));
  }
  const LateVariables late{{"sum1", "sum0"}, {"sum3"}};
  Lowered program = lower(graph, {}, false);
  CHECK(put_late_last(program, late) == std::vector<std::size_t>{0, 0, 0, 1, 1, 2});
  CHECK(in_order(program));
  group_updates(program, SIZE_MAX, late);
  CHECK(operators_of(program) == Names{"sgd of 3", "sgd of 2", "sgd"});

  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    const auto variables = std::make_shared<Variables>(device, 1);
    Program updates = compile(graph, std::span<const Value>(), variables, {.late = late});
    const std::vector<std::size_t> marks{updates.launches_until_read(late[0]), updates.launches_until_read(late[1])};
    CHECK(marks == std::vector<std::size_t>{1, 2});
    CHECK(updates.launches_until_read(Names{"sum2", "sum3"}) == 0);
    CHECK(updates.launches_until_read(Names{"w", "rates"}) == updates.launches());
    Tensor one(DType::f32, {});
    one.values<float>()[0] = 1;
    updates.write("rate", one);
    Tensor ones(DType::f32, {100});
    std::ranges::fill(ones.values<float>(), 1.0F);
    for (const int early : {2, 4, 5}) variables->write(fmt::format("sum{}", early), ones);
    updates.run(marks, [&](std::size_t i) {
      for (const std::string& name : late[i]) variables->write(name, ones);
    });
    for (int i = 0; i < 6; ++i) CHECK(variables->read(fmt::format("w{}", i)).values<float>()[99] == -1);
  }
}

TEST_CASE("programs group updates of any sizes and keep to their bits", "[compile][group]") {
  for (const DevicePtr& device : devices()) {
    Graph graph;
    const Value rate = graph.input("rate", {DType::f32, {}});
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < 40; ++i) {  // more than one launch takes where arguments are few
      const Shape shape = i % 3 == 0 ? Shape{i * 700 + 1} : i % 3 == 1 ? Shape{i, 3, 2} : Shape{};
      names.push_back(fmt::format("w{}", i));
      const Value weight = variable(graph, names.back(), {DType::f32, shape});
      update(weight, square(weight), rate);
    }
    std::vector<std::vector<Tensor>> results;
    std::vector<std::size_t> launches;
    for (const bool alone : {true, false}) {
      const auto variables = std::make_shared<Variables>(device, 1);
      Program program = compile(graph, {}, variables, {.retain = alone ? Retain::all : Retain::outputs});
      for (const std::string& name : names) {
        Tensor tensor(variables->read(name).spec());
        float x = static_cast<float>(name.size());
        for (float& value : tensor.values<float>()) value = std::sin(x += 0.37F);
        variables->write(name, tensor);
      }
      program.write("rate", Tensor::of({}, std::vector<float>{0.1F}));
      for (int run = 0; run < 3; ++run) program.run();
      results.emplace_back();
      for (const std::string& name : variables->names()) results.back().push_back(variables->read(name));
      launches.push_back(program.launches());
    }
    INFO("on " << device->info().id);
    CHECK(launches[0] >= 40);
    CHECK(launches[1] == 2);  // a number's rate is of its own size: another group
    std::size_t different = 0;
    for (std::size_t i = 0; i < results[0].size(); ++i) {
      different += std::ranges::equal(results[0][i].bytes(), results[1][i].bytes()) ? 0 : 1;
    }
    CHECK(different == 0);
  }
}

}  // namespace concord::test
