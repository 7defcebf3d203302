// Values and modules with several inputs and outputs.
#include "concord/concord.hpp"
#include "core/thrown.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// Two inputs, of which the second may be left out; two outputs.
struct TwoTowers : nn::Module {
  nn::Linear image{4, 3}, table{2, 3};
  [[nodiscard]] Children children() override { return {{"image", &image}, {"table", &table}}; }
  [[nodiscard]] std::vector<std::string> input_names() const override { return {"image", "table"}; }
  [[nodiscard]] Values forward_values(const Values& inputs) override {
    Value sum = image(inputs["image"]);
    if (const Value x = inputs.find("table")) sum = sum + table(x);
    return {{"class", sum}, {"size", concord::sum(sum, {1})}};
  }
};

struct Nothing : nn::Module {};

}  // namespace

TEST_CASE("a list of values finds them by name and by position", "[nn][values]") {
  Graph graph;
  const Value a = graph.input("a", {DType::f32, Shape{1}}), b = graph.input("b", {DType::f32, Shape{1}});
  const Values named{{"first", a}, {"second", b}}, placed{a, b}, one = a;
  CHECK(named["second"] == b);
  CHECK(named[0] == a);
  CHECK(one.only() == a);
  CHECK_FALSE(named.find("third"));
  CHECK(placed.named({"x", "y", "z"})["y"] == b);
  CHECK(thrown([&] { static_cast<void>(named["third"]); }) ==
        "ArgumentError: there is no value 'third' among first, second");
  CHECK(thrown([&] { static_cast<void>(placed[2]); }) ==
        "ArgumentError: there is no value number 2: there are 2, 0, 1");
  CHECK(thrown([&] { static_cast<void>(named.only()); }) == "ArgumentError: one value is needed, got 2: first, second");
  CHECK(thrown([&] {
          static_cast<void>(named.named({"first", "other"}));
        }) == "ArgumentError: the name 'second' is not one of first, other");
  CHECK(thrown([&] {
          static_cast<void>(Values{{"a", a}, {"a", b}});
        }) == "ArgumentError: there are two values named 'a'");
}

TEST_CASE("a module with several inputs and outputs is called by name or by position", "[nn][values]") {
  Graph graph;
  TwoTowers net;
  const Value x = graph.input("x", {DType::f32, Shape{5, 4}}), t = graph.input("t", {DType::f32, Shape{5, 2}});
  const Values by_name = net({{"table", t}, {"image", x}});
  CHECK(by_name["class"].shape() == Shape{5, 3});
  CHECK(by_name["size"].shape() == Shape{5});
  CHECK(net({x, t}).names() == "class, size");
  CHECK(net(Values{{"image", x}})["class"].shape() == Shape{5, 3});
  CHECK(graph.find("table.weight").shape() == Shape{3, 2});

  CHECK_THAT(thrown([&] { static_cast<void>(net(x)); }), contains("has 2 outputs, class, size"));
  CHECK_THAT(thrown([&] { net(Values{{"image", x}, {"text", t}}); }), contains("'text' is not one of image, table"));
  CHECK_THAT(thrown([&] { net(Values{}); }), contains("without a value"));
  nn::Linear layer{4, 3};
  CHECK_THAT(thrown([&] { layer({x, t}); }), contains("takes one value, got 2"));
  Nothing nothing;
  CHECK_THAT(thrown([&] { static_cast<void>(nothing(x)); }), contains("neither forward nor forward_values"));
  Graph other;
  CHECK_THROWS_AS(net({{"image", x}, {"table", other.input("t", {DType::f32, Shape{5, 2}})}}), ArgumentError);
}
