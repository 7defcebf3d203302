// Spaces of a search: what they mean, what is refused, and draws.
#include "concord/search/space.hpp"

#include <array>
#include <cmath>
#include <set>

#include "concord/core/text.hpp"
#include "files.hpp"

namespace concord::test {
namespace {

using search::Parameter;
using search::Space;

Parameter parameter_of(const std::string& text) { return Space::parse(text).parameters().at(0); }

std::string refusal(const std::string& text) {
  return message_of<ArgumentError>([&] { static_cast<void>(Space::parse(text)); });
}

}  // namespace

TEST_CASE("a space has ranges, choices and fixed values", "[search]") {
  const Space space =
      Space::parse(" lr=log(1e-4, 1e-1)  batch={32, 64} depth=[2,6] momentum=[0,0.9] optimizer=adam\n x={a,b|c} ");
  REQUIRE(space.parameters().size() == 6);
  const Parameter& lr = space.parameters()[0];
  CHECK(lr.name == "lr");
  CHECK((lr.kind == Parameter::Kind::log && lr.low == 1e-4 && lr.high == 1e-1 && !lr.is_whole));
  CHECK_FALSE(lr.count());
  CHECK(space.parameters()[1].choices == std::vector<std::string>{"32", "64"});
  CHECK((space.parameters()[2].is_whole && space.parameters()[2].count() == 5));
  CHECK_FALSE(space.parameters()[3].is_whole);
  CHECK(space.parameters()[4].choices == std::vector<std::string>{"adam"});
  CHECK(space.parameters()[5].choices == std::vector<std::string>{"a,b", "c"});
}

TEST_CASE("the values of a parameter", "[search]") {
  CHECK(parameter_of("d=[2,6]").at(0) == "2");
  CHECK(parameter_of("d=[2,6]").at(0.99999) == "6");
  CHECK(parameter_of("d=[2,6]").at(0.5) == "4");
  CHECK(parameter_of("d=[-2,1]").at(0.1) == "-2");
  CHECK(parameter_of("d=[0,1.0]").at(0.25) == "0.25");
  CHECK(parameter_of("lr=log(1e-4,1e-2)").at(0.5) == "0.001");
  CHECK(parameter_of("lr=log(1e-4,1e-2)").at(0) == "0.0001");
  CHECK(parameter_of("lr=log(1e-4,1e-2)").at(1) == "0.01");
  CHECK(parameter_of("w=log(8,64)").at(0.9999) == "64");
  CHECK(parameter_of("x={a,b,c}").at(0.34) == "b");
  CHECK(parameter_of("lr=log(1e-4,1e-2,3)").value(1) == "0.001");
  CHECK(parameter_of("d=[0,10,3]").value(1) == "5");
  const Parameter narrow = parameter_of("lr=[0.10001,0.10002]");  // five digits would not do
  CHECK(narrow.place(narrow.at(0.5)) == Approx(0.5));
  // Places are the inverse, on the same scale.
  CHECK(parameter_of("lr=log(1e-4,1e-2)").place("0.001") == Approx(0.5));
  CHECK(parameter_of("d=[2,6]").place("3") == Approx(0.25));
  CHECK(parameter_of("x={a,b,c}").place("c") == 1);
  CHECK(contains(message_of<ArgumentError>([] { static_cast<void>(parameter_of("x={a,b}").place("d")); }), "'d'"));
}

TEST_CASE("a space that makes no sense is refused with the parameter and the reason", "[search]") {
  CHECK(contains(refusal(""), "no parameter"));
  CHECK(contains(refusal("lr"), "expected NAME=values"));
  CHECK(contains(refusal("=3"), "expected NAME=values"));
  CHECK(contains(refusal("lr="), "it has no value"));
  CHECK(contains(refusal("lr=[3,2]"), "the range is empty: 3 is above 2"));
  CHECK(contains(refusal("lr=[2,2]"), "write lr=2"));
  CHECK(contains(refusal("lr=log(0,1)"), "a logarithmic range begins above 0"));
  CHECK(contains(refusal("lr=log(-1,1)"), "a logarithmic range begins above 0"));
  CHECK(contains(refusal("lr=[a,1]"), "'a' is not a finite number"));
  CHECK(contains(refusal("lr=[0,inf]"), "'inf' is not a finite number"));
  CHECK(contains(refusal("lr=[0,nan]"), "'nan' is not a finite number"));
  CHECK(contains(refusal("lr=[0,1"), "it must end with ]"));
  CHECK(contains(refusal("lr=log(0.1,1"), "it must end with )"));
  CHECK(contains(refusal("lr=[1]"), "two ends"));
  CHECK(contains(refusal("lr=[1,2,3,4]"), "two ends"));
  CHECK(contains(refusal("lr=[1,2,1]"), "'1' is not a number of values"));
  CHECK(contains(refusal("d=[1,2,5]"), "fewer than 5 whole numbers"));
  CHECK(contains(refusal("x={a,,b}"), "a choice is empty"));
  CHECK(contains(refusal("x={}"), "a choice is empty"));
  CHECK(contains(refusal("x={a,a}"), "the choice a is there twice"));
  CHECK(contains(refusal("x={a}y=3"), "expected a space before 'y=3'"));
  CHECK(contains(refusal("x=1 x=2"), "x is there twice"));
}

TEST_CASE("a grid has all combinations, and needs to know how many", "[search]") {
  const Space space = Space::parse("a={x,y} b=[1,3] c=log(0.01,1,3) d=5");
  REQUIRE(space.combinations() == 18);
  std::set<std::string> all;
  for (std::int64_t i = 0; i < 18; ++i) {
    std::string text;
    for (const search::Setting& setting : space.combination(i)) text += setting.name + setting.value + ' ';
    all.insert(text);
  }
  CHECK(all.size() == 18);
  CHECK(all.contains("ay b3 c0.1 d5 "));
  const auto combinations_of = [](const std::string& text) {
    return message_of<ArgumentError>([&] { static_cast<void>(Space::parse(text).combinations()); });
  };
  CHECK(contains(combinations_of("lr=log(1e-4,1e-1)"), "lr=log(0.0001,0.1,5)"));
  CHECK(contains(combinations_of("m=[0,0.9]"), "m=[0,0.9,5]"));
  CHECK(contains(combinations_of("a=[1,2000] b=[1,2000]"), "more than 1000000 combinations"));
}

TEST_CASE("values that rounding makes equal are one value of a grid", "[search]") {
  const Parameter whole = parameter_of("d=log(1,4,4)");  // 1, 1.59, 2.52, 4
  CHECK(whole.values == std::vector<std::string>{"1", "2", "3", "4"});
  const Parameter few = parameter_of("d=log(1,10,8)");  // 1, 1.39, 1.93, …
  REQUIRE(few.count() == 7);
  CHECK((few.value(0) == "1" && few.value(1) == "2" && few.value(6) == "10"));
  CHECK(few.at(0.99999) == "10");
  CHECK(Space::parse("d=log(1,10,8) a={x,y}").combinations() == 14);
}

TEST_CASE("draws depend on the seed, the trial and the name only", "[search]") {
  const Space space = Space::parse("lr=log(1e-4,1e-1) batch={32,64}");
  const Space turned = Space::parse("depth=[2,6] batch={32,64} lr=log(1e-4,1e-1)");
  std::set<std::string> values;
  for (std::int64_t trial = 0; trial < 50; ++trial) {
    const search::Settings settings = space.draw(7, trial);
    CHECK(settings[0] == turned.draw(7, trial)[2]);
    CHECK(settings[1] == turned.draw(7, trial)[1]);
    values.insert(settings[0].value);
  }
  CHECK(values.size() > 45);
  CHECK(space.draw(7, 3) != space.draw(8, 3));
}

TEST_CASE("draws fill the range evenly on its scale", "[search]") {
  const Space space = Space::parse("lr=log(1e-4,1) d=[1,4]");
  std::array<int, 4> decades{}, whole{};
  for (std::int64_t trial = 0; trial < 4000; ++trial) {
    const search::Settings settings = space.draw(1, trial);
    const double place = space.parameters()[0].place(settings[0].value);
    ++decades.at(static_cast<std::size_t>(std::min(place * 4, 3.0)));
    ++whole.at(static_cast<std::size_t>(*number_in_text<int>(settings[1].value) - 1));
  }
  // Five deviations of a binomial count: sqrt(4000 · 1/4 · 3/4) is 27.
  for (const int count : decades) CHECK(std::abs(count - 1000) < 137);
  for (const int count : whole) CHECK(std::abs(count - 1000) < 137);
}

}  // namespace concord::test
