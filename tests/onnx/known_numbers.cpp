// Numbers that an ONNX file computes of shapes: operators that do so while the network is traced, and what is said of
// those that do not.
#include "onnx/example.hpp"

using namespace concord;
using namespace concord::test;
using onnx::ElementType;

namespace {

// y is h as float, where h is made of s, the shape of x, and must be known.
Example known(std::vector<onnx::NodeDef> nodes, std::vector<onnx::TensorProto> initializers = {}) {
  const auto to_float = attribute("to", static_cast<std::int64_t>(ElementType::f32));
  nodes.insert(nodes.begin(), node("Shape", {"x"}, {"s"}));
  nodes.push_back(node("ConstantOfShape", {"h"}, {"zeros"}));
  nodes.push_back(node("ReduceSum", {"zeros"}, {"nothing"}, {attribute("keepdims", std::int64_t{0})}));
  nodes.push_back(node("Cast", {"h"}, {"f"}, {to_float}));
  nodes.push_back(node("Add", {"f", "nothing"}, {"g"}));
  nodes.push_back(node("ReduceSum", {"x"}, {"sum"}, {attribute("keepdims", std::int64_t{0})}));
  nodes.push_back(node("Add", {"g", "sum"}, {"y"}));
  return {std::move(nodes), std::move(initializers), ElementType::f32, 19};
}

const std::vector<std::int64_t> kShape{1, 2, 3};
const Numbers kZeros(6, 0.0F);

}  // namespace

TEST_CASE("shapes are clipped, padded, gathered and converted while an ONNX file is traced", "[onnx]") {
  const auto low = integer_proto("low", {}, {2}), high = integer_proto("high", {}, {2});
  check(known({node("Clip", {"s", "low"}, {"h"})}, {low}), kShape, kZeros, {2, 2, 3});
  check(known({node("Clip", {"s", "", "high"}, {"h"})}, {high}), kShape, kZeros, {1, 2, 2});

  const auto padded = [](const char* mode, std::vector<std::int64_t> pads, const char* fill = "") {
    return known(
        {node("Pad", {"s", "pads", fill}, {"h"}, {{.name = "mode", .type = onnx::AttributeType::s, .s = mode}})},
        {integer_proto("pads", {2}, pads), integer_proto("seven", {}, {7})});
  };
  check(padded("constant", {2, 1}), kShape, kZeros, {0, 0, 1, 2, 3, 0});
  check(padded("constant", {1, -1}, "seven"), kShape, kZeros, {7, 1, 2});
  check(padded("reflect", {2, 1}), kShape, kZeros, {3, 2, 1, 2, 3, 2});
  check(padded("edge", {2, 1}), kShape, kZeros, {1, 1, 1, 2, 3, 3});
  check(padded("edge", {-1, 1}), kShape, kZeros, {2, 3, 3});
  check(padded("wrap", {2, 1}), kShape, kZeros, {2, 3, 1, 2, 3, 1});

  check(known({node("GatherElements", {"s", "places"}, {"h"})}, {integer_proto("places", {2}, {-1, 0})}), kShape,
        kZeros, {3, 1});

  const auto first = integer_proto("first", {1}, {0});
  check(known({node("CastLike", {"two", "s"}, {"whole"}), node("Unsqueeze", {"whole", "first"}, {"h"})},
              {float_proto("two", {}, {2}), first}),
        kShape, kZeros, {2});
  // Of x the type is known alone.
  check(known({node("CastLike", {"s", "x"}, {"number"}), node("CastLike", {"number", "s"}, {"h"})}), kShape, kZeros,
        {1, 2, 3});
}

TEST_CASE("an operator that does not compute known numbers while tracing is named", "[onnx]") {
  const auto largest = node("ArgMax", {"s"}, {"a"});
  CHECK_THAT(refusal<NotSupported>(known({largest, node("Abs", {"a"}, {"h"})}), kShape),
             contains("node 'zeros' (ConstantOfShape)") && contains("input 0 ('h')") &&
                 contains("ArgMax is not computed while tracing"));
  CHECK_THAT(refusal<NotSupported>(known({node("Cast", {"x"}, {"h"}, {attribute("to", std::int64_t{7})})}), kShape),
             contains("depends on data"));
}

TEST_CASE("clipped and padded parameters of an ONNX file keep their gradient", "[onnx]") {
  onnx::Model model = empty_model();
  model.graph.initializers = {float_proto("w", {2}, {-3, 0.5F}), float_proto("low", {}, {-1}),
                              integer_proto("pads", {2}, {1, 0}), integer_proto("places", {3}, {2, 1, 0})};
  model.graph.nodes = {node("Clip", {"w", "low"}, {"c"}), node("Pad", {"c", "pads"}, {"p"}),
                       node("GatherElements", {"p", "places"}, {"g"}), node("Mul", {"x", "g"}, {"y"})};
  model.graph.inputs = {declared("x", ElementType::f32, {3})};
  model.graph.outputs = {declared("y", ElementType::f32, {3})};
  const ModelFile file(model);
  onnx::Network network = onnx::load(file.path());
  const Tensor x = Tensor::of<float>({3}, {2, 3, 4});
  CHECK(numbers_of(Session(network, devices().front()).run({{"x", x}}).at("y")) == Numbers{1, -3, 0});
  Graph graph;
  const Value y = network(graph.input("x", {DType::f32, {3}}));
  CHECK(gradient(sum(y), {graph.find("w")})[0].shape() == Shape{2});
}
