// Operators of ONNX where the specification's rule is easily missed: on the host and in the graph, on every device.
#include <limits>

#include "onnx/model_builder.hpp"

using namespace concord;
using namespace concord::test;
using onnx::ElementType;

namespace {

using Numbers = std::vector<float>;

// Nodes that make y of x.
struct Example {
  std::vector<onnx::NodeDef> nodes;
  std::vector<onnx::TensorProto> initializers = {};
  ElementType type = ElementType::f32;
  std::int64_t opset = 17;
};

onnx::Model model_of(const Example& example, const std::vector<std::int64_t>& dims) {
  onnx::Model model = empty_model(example.opset);
  model.graph.nodes = example.nodes;
  model.graph.initializers = example.initializers;
  model.graph.inputs = {declared("x", example.type, dims)};
  model.graph.outputs = {onnx::ValueInfo{"y"}};
  return model;
}

Tensor tensor_of(DType type, const std::vector<std::int64_t>& dims, const Numbers& numbers) {
  if (type == DType::f32) return Tensor::of<float>(Shape(dims), numbers);
  return Tensor::of<std::int32_t>(Shape(dims), std::vector<std::int32_t>(numbers.begin(), numbers.end()));
}

Numbers numbers_of(const Tensor& tensor) {
  const auto all = [](const auto values) { return Numbers(values.begin(), values.end()); };
  if (tensor.dtype() == DType::u8) return all(tensor.values<std::uint8_t>());
  return tensor.dtype() == DType::f32 ? all(tensor.values<float>()) : all(tensor.values<std::int32_t>());
}

void check(const Example& example, const std::vector<std::int64_t>& dims, const Numbers& x, const Numbers& expected) {
  const ModelFile file(model_of(example, dims));
  const onnx::Network network = onnx::load(file.path());
  for (const DevicePtr& device : devices()) {
    INFO(example.nodes.back().op_type << " on " << device->info().id);
    const Tensor input = tensor_of(onnx::dtype_of(example.type), dims, x);
    const Numbers y = numbers_of(Session(network, device).run({{"x", input}}).at("y"));
    REQUIRE(y.size() == expected.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      INFO("element " << i << " is " << y[i]);
      CHECK((y[i] == expected[i] || std::abs(y[i] - expected[i]) < 1e-4F));
    }
  }
}

template <class ErrorClass>
std::string refusal(const Example& example, const std::vector<std::int64_t>& dims) {
  const ModelFile file(model_of(example, dims));
  onnx::Network network = onnx::load(file.path());
  Graph graph;
  graph.set_training(false);
  const Value x = graph.input("x", {onnx::dtype_of(example.type), Shape(dims)});
  return message_of<ErrorClass>([&] { (void)network.trace(graph, Values{{"x", x}}); });
}

// The numbers of a type without elements, which are known.
std::vector<onnx::NodeDef> after_nothing(std::vector<onnx::NodeDef> nodes) {
  nodes.insert(nodes.begin(), {node("Shape", {"x"}, {"shape"}), node("Slice", {"shape", "zero", "zero"}, {"nothing"})});
  return nodes;
}

constexpr auto kToFloat = static_cast<std::int64_t>(ElementType::f32);

}  // namespace

TEST_CASE("an empty axis of an ONNX file splits into empty parts", "[onnx]") {
  const std::vector<onnx::TensorProto> numbers{integer_proto("zero", {1}, {0}), integer_proto("open", {1}, {-1})};
  const auto nodes = after_nothing({node("Split", {"nothing"}, {"p", "q"}),
                                    node("Concat", {"p", "open", "q"}, {"flat"}, {attribute("axis", std::int64_t{0})}),
                                    node("Reshape", {"x", "flat"}, {"y"})});
  check({nodes, numbers}, {2, 2}, {1, 2, 3, 4}, {1, 2, 3, 4});
}

TEST_CASE("an empty axis of an ONNX file is sliced backwards", "[onnx]") {
  const std::vector<onnx::TensorProto> numbers{integer_proto("zero", {1}, {0}), integer_proto("back", {1}, {-1}),
                                               integer_proto("far", {1}, {-9999})};
  const auto nodes = after_nothing({node("Slice", {"nothing", "back", "far", "zero", "back"}, {"p"}),
                                    node("Concat", {"p", "back"}, {"flat"}, {attribute("axis", std::int64_t{0})}),
                                    node("Reshape", {"x", "flat"}, {"y"})});
  check({nodes, numbers}, {2, 2}, {1, 2, 3, 4}, {1, 2, 3, 4});
}

TEST_CASE("reductions of nothing give their neutral numbers", "[onnx]") {
  const auto reduced = [](const char* op, ElementType type) {
    return Example{after_nothing({node("Cast", {"nothing"}, {"n"}, {attribute("to", static_cast<std::int64_t>(type))}),
                                  node(op, {"n"}, {"r"}), node("Cast", {"r"}, {"f"}, {attribute("to", kToFloat)}),
                                  node("Expand", {"f", "one"}, {"e"}), node("Add", {"x", "e"}, {"y"})}),
                   {integer_proto("zero", {1}, {0}), integer_proto("one", {1}, {1})}};
  };
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  check(reduced("ReduceProd", ElementType::i64), {1}, {0}, {1});
  check(reduced("ReduceSum", ElementType::i64), {1}, {0}, {0});
  check(reduced("ReduceMax", ElementType::f32), {1}, {0}, {-kInfinite});
  check(reduced("ReduceMin", ElementType::f32), {1}, {0}, {kInfinite});
  check(reduced("ReduceMax", ElementType::i8), {1}, {0}, {-128});
  check(reduced("ReduceMin", ElementType::u16), {1}, {0}, {65535});
  check(reduced("ReduceL2", ElementType::f32), {1}, {0}, {0});
  check(reduced("ReduceLogSum", ElementType::f32), {1}, {0}, {-kInfinite});
}

TEST_CASE("integer results of reductions lose their fraction", "[onnx]") {
  const auto rows = [](const char* op) {
    return Example{
        {node(op, {"x"}, {"y"}, {attribute("axes", std::vector<std::int64_t>{1})})}, {}, ElementType::i32, 13};
  };
  check(rows("ReduceMean"), {3, 2}, {1, 2, -1, -2, 3, 3}, {1, -1, 3});
  check(rows("ReduceMean"), {1, 3}, {2, 2, 2}, {2});
  check(rows("ReduceL2"), {3, 2}, {3, 4, 1, 1, 2, 2}, {5, 1, 2});
  check(rows("ReduceLogSum"), {2, 2}, {3, 5, 0, 1}, {2, 0});
  check(rows("ReduceSum"), {1, 2}, {8388609, 0}, {8388609});
}

TEST_CASE("a power of an integer loses its fraction", "[onnx]") {
  const auto of_x = [](onnx::TensorProto exponent) {
    return Example{{node("Pow", {"x", "e"}, {"y"})}, {std::move(exponent)}, ElementType::i32};
  };
  check(of_x(float_proto("e", {}, {0.5F})), {4}, {9, 2, 8, 16}, {3, 1, 2, 4});
  check(of_x(float_proto("e", {3}, {0.5F, 1.5F, 2})), {3}, {25, 4, -3}, {5, 8, 9});
  check(of_x(integer_proto("e", {}, {-1})), {4}, {1, 2, -1, -2}, {1, 0, -1, 0});
  const auto known = [](onnx::TensorProto base, onnx::TensorProto exponent) {
    return Example{{node("Pow", {"b", "e"}, {"p"}), node("Cast", {"p"}, {"f"}, {attribute("to", kToFloat)}),
                    node("Add", {"x", "f"}, {"y"})},
                   {std::move(base), std::move(exponent)}};
  };
  check(known(integer_proto("b", {2}, {9, 8}), float_proto("e", {}, {0.5F})), {2}, {0, 0}, {3, 2});
  check(known(integer_proto("b", {3}, {2, -1, 3}), integer_proto("e", {3}, {-1, -3, 4})), {3}, {0, 0, 0}, {0, -1, 81});
}

TEST_CASE("conversions to small integers keep the low bits", "[onnx]") {
  const auto converted = [](ElementType from, ElementType to) {
    return Example{{node("Cast", {"x"}, {"y"}, {attribute("to", static_cast<std::int64_t>(to))})}, {}, from};
  };
  check(converted(ElementType::i32, ElementType::i8), {4}, {200, 300, -129, -128}, {-56, 44, 127, -128});
  check(converted(ElementType::i32, ElementType::u8), {3}, {200, 300, -1}, {200, 44, 255});
  check(converted(ElementType::i32, ElementType::i16), {2}, {40000, -32769}, {-25536, 32767});
  check(converted(ElementType::i32, ElementType::u16), {2}, {70000, -1}, {4464, 65535});
  check(converted(ElementType::f32, ElementType::i8), {3}, {1.75F, -1.75F, 128.5F}, {1, -1, -128});
}

TEST_CASE("the window of LRN has the odd channel of an even size behind", "[onnx]") {
  const Example halves{{node("LRN", {"x"}, {"y"},
                             {attribute("size", std::int64_t{2}), attribute("alpha", 2.0F), attribute("beta", 1.0F),
                              attribute("bias", 0.0F)})}};
  check(halves, {1, 3, 1, 1}, {1, 2, 3}, {1.0F / 5, 2.0F / 13, 3.0F / 9});
}

TEST_CASE("ConvTranspose cuts more in front for an output_shape, unless it is SAME_UPPER", "[onnx]") {
  // The whole result is 1, 10, 101, 10, 101, 10, 100.
  const auto shaped = [](std::vector<onnx::Attribute> more) {
    more.push_back(attribute("strides", std::vector<std::int64_t>{2}));
    more.push_back(attribute("output_shape", std::vector<std::int64_t>{6}));
    return Example{{node("ConvTranspose", {"x", "w"}, {"y"}, std::move(more))},
                   {float_proto("w", {1, 1, 3}, {1, 10, 100})}};
  };
  check(shaped({}), {1, 1, 3}, {1, 1, 1}, {10, 101, 10, 101, 10, 100});
  check(shaped({{.name = "auto_pad", .type = onnx::AttributeType::s, .s = "SAME_UPPER"}}), {1, 1, 3}, {1, 1, 1},
        {1, 10, 101, 10, 101, 10});
}

TEST_CASE("sizes of Resize are rounded down in fp32", "[onnx]") {
  const Example smaller{
      {node("Resize", {"x", "", "scales"}, {"y"},
            {{.name = "coordinate_transformation_mode", .type = onnx::AttributeType::s, .s = "asymmetric"},
             {.name = "nearest_mode", .type = onnx::AttributeType::s, .s = "floor"}})},
      {float_proto("scales", {1}, {0.7F})}};
  check(smaller, {10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {0, 1, 2, 4, 5, 7, 8});
}

TEST_CASE("BatchNormalization takes the statistics of the batch where it is told so", "[onnx]") {
  const std::vector<onnx::TensorProto> weights{float_proto("s", {2}, {1, 1}), float_proto("b", {2}, {7, 7}),
                                               float_proto("m", {2}, {0, 0}), float_proto("v", {2}, {1, 1})};
  const std::vector<std::string> inputs{"x", "s", "b", "m", "v"};
  const auto mode = attribute("training_mode", std::int64_t{1});
  check({{node("BatchNormalization", inputs, {"y"}, {mode})}, weights}, {1, 2}, {10, 20}, {7, 7});
  check({{node("BatchNormalization", inputs, {"y", "m1", "v1", "m2", "v2"})}, weights, ElementType::f32, 12}, {2, 2},
        {0, 10, 2, 20}, {6, 6, 8, 8});
  check({{node("BatchNormalization", inputs, {"y"})}, weights, ElementType::f32, 12}, {1, 2}, {10, 20}, {17, 27});
}

TEST_CASE("indices that fp32 cannot count are refused", "[onnx]") {
  constexpr std::int64_t kMany = (1 << 24) + 1;
  const std::vector<onnx::TensorProto> indices{integer_proto("i", {2}, {kMany - 1, 0}),
                                               integer_proto("rows", {2, 1}, {kMany - 1, 0}),
                                               float_proto("u", {2}, {1, 2})};
  const std::vector<onnx::NodeDef> nodes{node("Gather", {"x", "i"}, {"y"}), node("GatherElements", {"x", "i"}, {"y"}),
                                         node("GatherND", {"x", "rows"}, {"y"}),
                                         node("ScatterElements", {"x", "i", "u"}, {"y"}),
                                         node("ScatterND", {"x", "rows", "u"}, {"y"})};
  for (const onnx::NodeDef& one : nodes)
    CHECK_THAT(refusal<NotSupported>({{one}, indices}, {kMany}), contains("counts to"));
  const onnx::NodeDef pool =
      node("MaxPool", {"x"}, {"p", "y"}, {attribute("kernel_shape", std::vector<std::int64_t>{1, 1})});
  CHECK_THAT(refusal<NotSupported>({{pool}}, {17, 1, 1024, 1024}), contains("counts to"));
  CHECK_THAT(refusal<NotSupported>({{pool}}, {1, 1, 2048, 2049}), contains("they are exact up to"));
}
