// Plot: ticks are round, what cannot be drawn breaks a line, text cannot break out of the page.
#include "concord/compare/report/plot.hpp"

#include <cmath>

#include "concord/compare/report/html.hpp"
#include "concord_test.hpp"

namespace concord::test {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

void check_ticks(const Axis& axis, const std::vector<double>& expected) {
  const std::vector<double> ticks = axis.ticks(5);
  REQUIRE(ticks.size() == expected.size());
  for (std::size_t i = 0; i < ticks.size(); ++i) CHECK(ticks[i] == Approx(expected[i]));
}

}  // namespace

TEST_CASE("ticks are round numbers inside the axis", "[compare]") {
  check_ticks({"x", Scale::linear, 0, 100}, {0, 20, 40, 60, 80, 100});
  check_ticks({"x", Scale::linear, -0.013, 0.021}, {-0.01, 0, 0.01, 0.02});
  check_ticks({"x", Scale::log, 1e-9, 1e-3}, {1e-9, 1e-7, 1e-5, 1e-3});
  check_ticks({"x", Scale::log, 0.4, 12}, {0.5, 1, 2, 5, 10});
  check_ticks({"x", Scale::log, 90, 110}, {100});
  check_ticks({"step", Scale::linear, 0.9, 3.1, true}, {1, 2, 3});
  check_ticks({"step", Scale::linear, 0.9, 1.1, true}, {1});
}

TEST_CASE("an axis has room for all that can be drawn", "[compare]") {
  const std::vector<double> values{3, NAN, -INFINITY, 0, 12, -1};
  const Axis linear = axis_over("y", Scale::linear, values), log = axis_over("y", Scale::log, values);
  for (const double value : {3.0, 0.0, 12.0, -1.0}) {
    CHECK(linear.shows(value));
    CHECK(linear.place(value) > 0);
    CHECK(linear.place(value) < 1);
  }
  CHECK_FALSE(linear.shows(NAN));
  CHECK_FALSE(log.shows(0));
  CHECK_FALSE(log.shows(-1));
  CHECK(log.place(3) > 0);
  CHECK(log.place(12) < 1);
  CHECK(log.place(6) == Approx(0.5));
  for (const Scale scale : {Scale::linear, Scale::log}) {
    for (const std::vector<double>& few : {std::vector<double>{}, {NAN}, {5, 5}}) {
      const Axis axis = axis_over("y", scale, few);
      CHECK(axis.low < axis.high);
      CHECK_FALSE(axis.ticks(5).empty());
    }
  }
}

TEST_CASE("a line is broken where a value cannot be drawn", "[compare]") {
  Plot plot({"step", Scale::linear, 0, 10}, {"loss", Scale::linear, 0, 10}, 462);
  const std::vector<PlotPoint> points{{0, 0}, {5, 5}, {6, NAN}, {7, 2}, {8, INFINITY}, {9, 1}, {10, 10}};
  plot.line(points, "s0");
  const std::string svg = plot.svg("losses");
  CHECK(count_of(svg, "<polyline class=\"line s0\"") == 2);
  CHECK(count_of(svg, "<circle class=\"mark lone s0\"") == 1);  // the one between two gaps
  CHECK_THAT(svg, !contains("nan") && !contains("inf"));
  // 62 px are left of the axes and 14 right of them; 12 above and 44 below, of 346.
  CHECK_THAT(svg, contains("points=\"62.0,302.0 255.0,157.0 \"") && contains("448.0,12.0 \""));
}

TEST_CASE("ticks are written so that they differ", "[compare]") {
  const auto svg = [](const Axis& y) { return Plot({"step", Scale::linear, 0, 30}, y, 900).svg("plot"); };
  CHECK_THAT(svg({"loss", Scale::linear, 4.553, 4.577}),
             contains(">4.555<") && contains(">4.560<") && contains(">4.565<"));
  CHECK_THAT(svg({"loss", Scale::linear, -1, 1}), contains(">-0.5<") && contains(">0.0<"));
  CHECK_THAT(svg({"loss", Scale::linear, 0, 3e6}), contains(">1 M<"));
  CHECK_THAT(svg({"loss", Scale::linear, 0, 3e-9}), contains(">1e-09<"));
  CHECK_THAT(svg({"drift", Scale::log, 1e-9, 1e-5}), contains(">1e-07<"));
}

TEST_CASE("marks have titles, and text of others stays text", "[compare]") {
  Plot plot({"a < b", Scale::log, 1, 100}, {"<script>", Scale::log, 1, 100}, 900);
  plot.marks(std::vector<PlotPoint>{{10, 10, "relu & \"more\"", 4}, {-1, 10, "left out", 4}}, "s1");
  const std::string svg = plot.svg("it's <b>");
  CHECK_THAT(svg, contains("<title>relu &amp; &quot;more&quot;</title>") && contains("a &lt; b") &&
                      contains("aria-label=\"it&#39;s &lt;b&gt;\"") && !contains("<script>") && !contains("left out"));
}

TEST_CASE("numbers are written for people", "[compare]") {
  CHECK(html::with_prefix(1.234e10) == "12.3 G");
  CHECK(html::with_prefix(1000) == "1 k");
  CHECK(html::with_prefix(0.00045) == "450 µ");
  CHECK(html::with_prefix(7) == "7");
  CHECK(html::with_prefix(0) == "0");
  CHECK(html::with_prefix(INFINITY) == "∞");
  CHECK(html::brief(1.25e-7) == "1.2e-07");
  CHECK(html::brief(99) == "99");
  CHECK(html::brief(99.9) == "100");
  CHECK(html::brief(-740.4) == "-740");
  CHECK(html::brief(99999.7) == "1e+05");
  CHECK(html::brief(NAN) == "NaN");
  CHECK(html::escaped("\xff µ \xe2\x82") == "\xEF\xBF\xBD µ \xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace concord::test
