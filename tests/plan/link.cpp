// Links: their grammar, files of measured exchanges, and the fit.
#include "concord/plan/link.hpp"

#include "files.hpp"

namespace concord::test {
namespace {

using plan::Link;
using plan::MeasuredExchange;

std::string refusal(const std::string& text) {
  return message_of<ArgumentError>([&] { static_cast<void>(plan::parse_link(text)); });
}

/// The time of an exchange by the formula of the model, all to all: 2·(L + (p − 1)·(g + n/p·G)) + n·s.
MeasuredExchange exchange_of(const Link& link, double sum, double bytes, int ranks) {
  const double others = ranks - 1;
  return {bytes, ranks, 2 * (link.latency + others * (link.gap + bytes / ranks * link.per_byte)) + bytes * sum};
}

}  // namespace

TEST_CASE("a link has a latency and a bandwidth", "[plan]") {
  const Link short_form = plan::parse_link("latency=20us,bandwidth=50GB/s");
  CHECK(short_form.latency == Approx(20e-6));
  CHECK(short_form.per_byte == Approx(1 / 50e9));
  CHECK((short_form.overhead == 0 && short_form.gap == 0));
  const Link long_form = plan::parse_link("latency=1ms, bandwidth=100MB/s, overhead=2us, gap=500ns");
  CHECK(long_form.latency == Approx(1e-3));
  CHECK(long_form.per_byte == Approx(1e-8));
  CHECK(long_form.overhead == Approx(2e-6));
  CHECK(long_form.gap == Approx(5e-7));
  CHECK(plan::parse_link("bandwidth=1Gbit/s,latency=0s").per_byte == Approx(8e-9));
  CHECK(plan::parse_link("bandwidth=100Mbit/s,latency=0s").per_byte == Approx(8e-8));
}

TEST_CASE("links that are refused", "[plan]") {
  CHECK(contains(refusal("latency=20us"), "bandwidth is missing"));
  CHECK(contains(refusal("bandwidth=1GB/s"), "latency is missing"));
  CHECK(
      contains(refusal("latency=20,bandwidth=1GB/s"), "latency is '20'; it must be a number of 0 or more with a unit"));
  CHECK(contains(refusal("latency=-1us,bandwidth=1GB/s"), "'-1us'"));
  CHECK(contains(refusal("latency=nans,bandwidth=1GB/s"), "'nans'"));
  CHECK(contains(refusal("latency=1us,bandwidth=0GB/s"), "above 0"));
  CHECK(contains(refusal("latency=1us,bandwidth=1GiB/s"), "GB/s, MB/s, Gbit/s or Mbit/s"));
  CHECK(contains(refusal("latency=1us,latency=1us,bandwidth=1GB/s"), "given twice"));
  CHECK(contains(refusal("speed=1"), "'speed' is unknown"));
  CHECK(contains(refusal("fast"), "NAME=VALUE"));
}

TEST_CASE("measured exchanges are read from a file", "[plan]") {
  const auto exchanges = plan::read_exchanges(
      "# by the transport host\nbytes,ranks,seconds,transport\n1024,2,0.5,host\r\n\n2048, 4, 1e-3, host\n", "x.csv");
  REQUIRE(exchanges.size() == 2);
  CHECK((exchanges[0].bytes == 1024 && exchanges[0].ranks == 2 && exchanges[0].seconds == 0.5));
  CHECK((exchanges[1].bytes == 2048 && exchanges[1].ranks == 4 && exchanges[1].seconds == 1e-3));
  const auto failure = [](const std::string& text) {
    return message_of<FormatError>([&] { static_cast<void>(plan::read_exchanges(text, "x.csv")); });
  };
  CHECK(contains(failure("1024,2,0.5\n"), "x.csv: line 1 must be the header"));
  CHECK(contains(failure("bytes,ranks,seconds\n1024,1,0.5\n"), "x.csv: line 2 is '1024,1,0.5'"));
  CHECK(contains(failure("bytes,ranks,seconds\n1024,2,0\n"), "seconds above 0"));
  CHECK(contains(failure("bytes,ranks,seconds\n1024,2\n"), "line 2"));
  CHECK(contains(failure("bytes,ranks,seconds\n"), "no exchange"));
}

TEST_CASE("a link is fitted to exchanges", "[plan]") {
  const Link link{30e-6, 0, 4e-6, 1 / 2e9};
  SECTION("of two ranks: latency and bandwidth, which include the rest") {
    std::vector<MeasuredExchange> exchanges;
    for (const double bytes : {1e4, 1e6, 1e8}) exchanges.push_back(exchange_of(link, 1e-10, bytes, 2));
    const plan::FittedLink fitted = plan::fit_link(exchanges);
    CHECK(fitted.link.latency == Approx(34e-6));
    CHECK(fitted.link.per_byte == Approx(6e-10));
    CHECK(fitted.link.gap == 0);
    CHECK(fitted.sum_per_byte == 0);
    CHECK(fitted.error < 1e-9);
  }
  SECTION("of several numbers of ranks: also the gap and the sums") {
    std::vector<MeasuredExchange> exchanges;
    for (const int ranks : {2, 3, 4}) {
      for (const double bytes : {1e4, 1e6, 1e8}) exchanges.push_back(exchange_of(link, 1e-10, bytes, ranks));
    }
    const plan::FittedLink fitted = plan::fit_link(exchanges);
    CHECK(fitted.link.latency == Approx(30e-6));
    CHECK(fitted.link.gap == Approx(4e-6));
    CHECK(fitted.link.per_byte == Approx(5e-10));
    CHECK(fitted.sum_per_byte == Approx(1e-10));
  }
  SECTION("of small ones that take no longer than latency: no bandwidth below 0") {
    const std::vector<MeasuredExchange> exchanges{{1000, 2, 1e-4}, {2000, 2, 0.9e-4}};
    const plan::FittedLink fitted = plan::fit_link(exchanges);
    CHECK(fitted.link.per_byte == 0);
    CHECK(fitted.error == Approx(0.05).margin(0.02));
  }
  SECTION("not of one size") {
    const std::vector<MeasuredExchange> exchanges{{1000, 2, 1e-4}, {1000, 4, 2e-4}};
    CHECK(contains(message_of<ArgumentError>([&] { static_cast<void>(plan::fit_link(exchanges)); }), "one size"));
  }
}

}  // namespace concord::test
