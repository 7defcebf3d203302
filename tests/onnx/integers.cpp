// Operators of ONNX on integers: fractions that are cut off, low bits that are kept, results that are exact.
#include "onnx/example.hpp"

using namespace concord;
using namespace concord::test;
using onnx::ElementType;

namespace {

constexpr auto kToFloat = static_cast<std::int64_t>(ElementType::f32);

// y = op(x, numbers), all of this type.
Example with_numbers(const char* op, ElementType type, const std::vector<std::int64_t>& numbers,
                     std::vector<onnx::Attribute> attributes = {}) {
  return {{node("Cast", {"n"}, {"b"}, {attribute("to", static_cast<std::int64_t>(type))}),
           node(op, {"x", "b"}, {"y"}, std::move(attributes))},
          {integer_proto("n", {static_cast<std::int64_t>(numbers.size())}, numbers)},
          type};
}

}  // namespace

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

TEST_CASE("quotients and remainders of integers are exact up to 2^24", "[onnx]") {
  const Numbers x{8388609, 16777215, 16777215, -8388609, 7, -7, 16777215};
  const std::vector<std::int64_t> divisors{8388610, 16777216, 16777214, 8388610, 2, 2, 1};
  const auto fmod = attribute("fmod", std::int64_t{1});
  check(with_numbers("Div", ElementType::i64, divisors), {7}, x, {0, 0, 1, 0, 3, -3, 16777215});
  check(with_numbers("Mod", ElementType::i64, divisors), {7}, x, {8388609, 16777215, 1, 1, 1, 1, 0});
  check(with_numbers("Mod", ElementType::i64, divisors, {fmod}), {7}, x, {8388609, 16777215, 1, -8388609, 1, -1, 0});
}

TEST_CASE("arithmetic with small integers keeps the low bits", "[onnx]") {
  const Numbers bytes{100, -128, 127};
  check(with_numbers("Add", ElementType::i8, {100, -1, 1}), {3}, bytes, {-56, 127, -128});
  check(with_numbers("Sub", ElementType::u8, {5, 100}), {2}, {3, 200}, {254, 100});
  check(with_numbers("Mul", ElementType::i8, {3, -1, 127}), {3}, bytes, {44, -128, 1});
  check(with_numbers("Mul", ElementType::u8, {2, 255}), {2}, {200, 255}, {144, 1});
  check(with_numbers("Mul", ElementType::u16, {65535, 300, 2}), {3}, {65535, 300, 40000}, {1, 24464, 14464});
  check(with_numbers("Mul", ElementType::i16, {-1, 300, 7000}), {3}, {-32768, 300, -5}, {-32768, 24464, 30536});
  check(with_numbers("Div", ElementType::i8, {-1, 3}), {2}, {-128, -7}, {-128, -2});
  check({{node("Neg", {"x"}, {"y"})}, {}, ElementType::i8}, {2}, {-128, 5}, {-128, -5});
  check({{node("Abs", {"x"}, {"y"})}, {}, ElementType::i8}, {2}, {-128, -5}, {-128, 5});
}
