// Operators of ONNX where the specification's rule is easily missed: on the host and in the graph, on every device.
#include <limits>

#include "onnx/example.hpp"

using namespace concord;
using namespace concord::test;
using onnx::ElementType;

namespace {

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

TEST_CASE("a reduction over no axis computes what it does besides", "[onnx]") {
  const auto over_none = [](const char* op, ElementType type = ElementType::f32) {
    return Example{{node(op, {"x"}, {"y"}, {attribute("noop_with_empty_axes", std::int64_t{1})})}, {}, type, 18};
  };
  for (const char* op : {"ReduceL1", "ReduceL2"}) {
    check(over_none(op), {3}, {-3, 0, 2}, {3, 0, 2});
    check({{node(op, {"x"}, {"y"})}}, {}, {-3}, {3});
  }
  check(over_none("ReduceSumSquare"), {3}, {-3, 0, 2}, {9, 0, 4});
  check({{node("ReduceSumSquare", {"x"}, {"y"})}}, {}, {-3}, {9});
  check(over_none("ReduceLogSum"), {2}, {1, 0.5F}, {0, -0.6931472F});
  check(over_none("ReduceLogSum", ElementType::i32), {2}, {1, 8}, {0, 2});
  for (const char* op : {"ReduceLogSumExp", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"}) {
    check(over_none(op), {2}, {-3, 2}, {-3, 2});
  }
}

TEST_CASE("ReduceLogSumExp takes infinite numbers", "[onnx]") {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const Example rows{{node("ReduceLogSumExp", {"x"}, {"y"}, {attribute("axes", std::vector<std::int64_t>{1})})}};
  check(rows, {4, 2}, {-kInfinite, -kInfinite, 1, -kInfinite, kInfinite, 1, 1, 1},
        {-kInfinite, 1, kInfinite, 1.6931472F});
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
}

TEST_CASE("ConvTranspose puts zeros behind a result that is smaller than its output_shape", "[onnx]") {
  for (const char* automatic : {"NOTSET", "SAME_UPPER", "SAME_LOWER"}) {
    const Example larger{{node("ConvTranspose", {"x", "w"}, {"y"},
                               {attribute("strides", std::vector<std::int64_t>{4}),
                                attribute("output_shape", std::vector<std::int64_t>{12}),
                                {.name = "auto_pad", .type = onnx::AttributeType::s, .s = automatic}})},
                         {float_proto("w", {1, 1, 2}, {1, 10})}};
    check(larger, {1, 1, 3}, {1, 2, 3}, {1, 10, 0, 0, 2, 20, 0, 0, 3, 30, 0, 0});
  }
}

TEST_CASE("ConvTranspose gives zeros where padding cuts all away and output_padding adds", "[onnx]") {
  struct Case {
    std::int64_t size, kernel, stride, dilation, before, after, added;
  };
  // By the definition: pixel i and weight k add to place i·stride + k·dilation − before.
  const auto line = [](const Case& c) {
    Numbers y(static_cast<std::size_t>((c.size - 1) * c.stride + c.added + (c.kernel - 1) * c.dilation + 1 - c.before -
                                       c.after),
              7.0F);
    for (std::int64_t i = 0; i < c.size; ++i) {
      for (std::int64_t k = 0; k < c.kernel; ++k) {
        const std::int64_t place = i * c.stride + k * c.dilation - c.before;
        if (place < 0 || place >= std::ssize(y)) continue;
        y[static_cast<std::size_t>(place)] += static_cast<float>((i + 1) * (k + 2));
      }
    }
    return y;
  };
  for (const Case& c : {Case{1, 1, 3, 1, 1, 1, 2},
                        {2, 1, 3, 1, 1, 1, 2},
                        {1, 2, 4, 1, 3, 0, 3},
                        {1, 2, 4, 1, 2, 0, 1},
                        {1, 2, 3, 2, 3, 1, 2},
                        {1, 1, 3, 1, -2, 2, 0},
                        {3, 2, 4, 1, 1, 2, 3}}) {
    INFO(c.size << ' ' << c.kernel << ' ' << c.stride << ' ' << c.dilation << ' ' << c.before << ' ' << c.after << ' '
                << c.added);
    Numbers x, w;
    for (std::int64_t i = 0; i < c.size; ++i) x.push_back(static_cast<float>(i + 1));
    for (std::int64_t k = 0; k < c.kernel; ++k) w.push_back(static_cast<float>(k + 2));
    check(
        {{node("ConvTranspose", {"x", "w", "b"}, {"y"},
               {attribute("strides", std::vector{c.stride}), attribute("dilations", std::vector{c.dilation}),
                attribute("pads", std::vector{c.before, c.after}), attribute("output_padding", std::vector{c.added})})},
         {float_proto("w", {1, 1, c.kernel}, w), float_proto("b", {1}, {7})}},
        {1, 1, c.size}, x, line(c));
  }
  // One row, which is cut away; of two columns, 4, 0, 0, 6 and what is added.
  const auto twice = [](const char* name, std::int64_t number) { return attribute(name, std::vector{number, number}); };
  const onnx::Attribute pads = attribute("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  const Example image{
      {node("ConvTranspose", {"x", "w"}, {"y"}, {twice("strides", 3), pads, twice("output_padding", 2)})},
      {float_proto("w", {1, 1, 1, 1}, {2})}};
  check(image, {1, 1, 1, 2}, {2, 3}, {0, 0, 0, 0});
  const Example less{
      {node("ConvTranspose", {"x", "w"}, {"y"}, {twice("strides", 3), pads, twice("output_padding", 1)})},
      {float_proto("w", {1, 1, 1, 1}, {2})}};
  CHECK_THAT(refusal<ShapeError>(less, {1, 1, 1, 2}), contains("leave nothing of axis 2"));
}

TEST_CASE("AveragePool and LpPool have windows with gaps", "[onnx]") {
  const auto pool = [](const char* op, std::vector<std::int64_t> dilations, std::vector<onnx::Attribute> more = {}) {
    more.push_back(attribute("kernel_shape", std::vector<std::int64_t>{2, 2}));
    more.push_back(attribute("dilations", std::move(dilations)));
    return Example{{node(op, {"x"}, {"y"}, std::move(more))}, {}, ElementType::f32, 19};
  };
  const Numbers image{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const auto pads = attribute("pads", std::vector<std::int64_t>{1, 0, 1, 0});
  check(pool("AveragePool", {2, 2}), {1, 1, 4, 4}, image, {6, 7, 10, 11});
  check(pool("AveragePool", {2, 2}), {1, 2, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19},
        {5, 15});
  check(pool("AveragePool", {2, 1}, {pads}), {1, 1, 4, 4}, image,
        {5.5F, 6.5F, 7.5F, 5.5F, 6.5F, 7.5F, 9.5F, 10.5F, 11.5F, 9.5F, 10.5F, 11.5F});
  check(pool("AveragePool", {2, 1}, {pads, attribute("count_include_pad", std::int64_t{1})}), {1, 1, 4, 4}, image,
        {2.75F, 3.25F, 3.75F, 5.5F, 6.5F, 7.5F, 9.5F, 10.5F, 11.5F, 4.75F, 5.25F, 5.75F});
  check(pool("LpPool", {2, 2}), {1, 1, 4, 4}, image, {14.56022F, 16.248077F, 21.633308F, 23.49468F});
}

TEST_CASE("a reduction of ScatterElements off the axis needs the sizes of the data", "[onnx]") {
  const onnx::NodeDef largest =
      node("ScatterElements", {"x", "i", "u"}, {"y"},
           {attribute("axis", std::int64_t{1}), {.name = "reduction", .type = onnx::AttributeType::s, .s = "max"}});
  const std::vector<onnx::TensorProto> one{integer_proto("i", {1, 1}, {0}), float_proto("u", {1, 1}, {5})};
  CHECK_THAT(refusal<NotSupported>({{largest}, one, ElementType::f32, 18}, {2, 2}),
             contains("'max' with indices [1, 1]") && contains("the sizes of the data [2, 2]"));
  const std::vector<onnx::TensorProto> row{integer_proto("i", {2, 1}, {0, 1}), float_proto("u", {2, 1}, {5, 6})};
  check({{largest}, row, ElementType::f32, 18}, {2, 2}, {1, 2, 3, 9}, {5, 2, 3, 9});
}

TEST_CASE("Mod with fmod takes the remainder of C", "[onnx]") {
  const auto by = [](const Numbers& divisors, std::vector<onnx::NodeDef> more) {
    more.insert(more.begin(),
                node("Mod", {"x", "b"}, {more.empty() ? "y" : "m"}, {attribute("fmod", std::int64_t{1})}));
    return Example{more, {float_proto("b", {static_cast<std::int64_t>(divisors.size())}, divisors)}};
  };
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  check(by({0.1F, 0.1F, 0.1F, 0.1F, 2.5F, kInfinite, -3}, {}), {7}, {5.3F, -5.3F, 1e6F, 0.35F, 7.5F, 5, -7},
        {0, 0, 0.0850988F, 0.05F, 0, 5, -1});
  check(by({1, 0, kInfinite, 2}, {node("IsNaN", {"m"}, {"y"})}), {4}, {kInfinite, 1, 4, 3}, {1, 1, 0, 0});
}
