// Sums of numbers that travel in 16 bits.
#include "concord/collective/rounding.hpp"

#include <cmath>
#include <limits>

#include "collective/rank_threads.hpp"

using namespace concord;
using namespace concord::test;
using collective::GroupPtr;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

/// What rank `rank` adds to element i: of magnitudes from about `unit` to 10⁶ · `unit`.
float term(int rank, std::size_t i, float unit) {
  return unit * std::sin(static_cast<float>(i % 977) + 0.5F) *
         std::pow(10.0F, static_cast<float>((i + 3U * static_cast<unsigned>(rank)) % 7));
}

std::vector<float> terms(int rank, std::size_t n, float unit = 1) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = term(rank, i, unit);
  return values;
}

/// The sums of `values(rank)` on each rank, which all have the same bits.
std::vector<float> summed(int size, Transport transport, Precision precision,
                          const std::function<std::vector<float>(int rank)>& values) {
  std::vector<std::vector<float>> results(static_cast<std::size_t>(size));
  const auto errors = on_ranks(
      size,
      [&](const GroupPtr& group) {
        std::vector<float> own = values(group->rank());
        group->all_reduce_rounded(own, precision);
        results[static_cast<std::size_t>(group->rank())] = own;
      },
      std::chrono::seconds(60), transport);
  CHECK(errors == std::vector<std::string>(results.size()));
  for (const std::vector<float>& result : results) {
    REQUIRE(result.size() == results[0].size());
    CHECK(std::memcmp(result.data(), results[0].data(), result.size() * sizeof(float)) == 0);
  }
  return results[0];
}

}  // namespace

TEST_CASE("a number is rounded to the nearest of bf16, ties to even", "[collective]") {
  CHECK(to_bf16(1.00390625F).bits == to_bf16(1.0F).bits);
  CHECK(static_cast<float>(to_bf16(1.01171875F)) == 1.015625F);
  CHECK(std::isnan(static_cast<float>(to_bf16(kNan))));
  CHECK(static_cast<float>(to_bf16(kInfinity)) == kInfinity);
}

TEST_CASE("a number is rounded to the nearest of fp16, ties to even", "[collective]") {
  bool are_right = true;
  for (std::uint16_t bits = 0; bits < 0x7c00; ++bits) {  // all that are finite
    const Fp16 below{bits}, above{static_cast<std::uint16_t>(bits + 1)};
    const float from = below, to = bits == 0x7bff ? 65536.0F : static_cast<float>(above);
    const float expected = bits < 0x400 ? std::ldexp(static_cast<float>(bits), -24)
                                        : std::ldexp(1024.0F + static_cast<float>(bits & 0x3ff), (bits >> 10) - 25);
    const float middle = (from + to) / 2;
    const Fp16 even = bits % 2 == 0 ? below : above;
    for (const float sign : {1.0F, -1.0F}) {
      const auto is = [&](float number, Fp16 wanted) {
        return to_fp16(sign * number).bits == (wanted.bits | (sign < 0 ? 0x8000 : 0));
      };
      are_right = are_right && from == expected && is(from, below) && is(middle, even) &&
                  is(std::nextafter(middle, 0.0F), below) && is(std::nextafter(middle, kInfinity), above);
    }
  }
  CHECK(are_right);
  CHECK(to_fp16(1e30F).bits == 0x7c00);
  CHECK(static_cast<float>(to_fp16(-kInfinity)) == -kInfinity);
  CHECK(std::isnan(static_cast<float>(to_fp16(kNan))));
}

TEST_CASE("the scale to fp16 lets the sum of the ranks fit", "[collective]") {
  for (const int ranks : {1, 2, 3, 8, 1000}) {
    for (const float largest : {1e-30F, 0.99F, 1.0F, 1.01F, 3e4F, 1e30F}) {
      const double sum = static_cast<double>(largest) * ranks * collective::scale_to_fp16(largest, ranks);
      INFO(ranks << " of " << largest);
      CHECK(sum <= 32768);
      CHECK(sum > 32768.0 / 4);
    }
  }
  CHECK(collective::scale_to_fp16(0, 2) == 1);
  CHECK(std::isnormal(1 / collective::scale_to_fp16(1e-45F, 2)));
  CHECK(std::isnormal(1 / collective::scale_to_fp16(3e38F, 1000)));
}

TEST_CASE("all_reduce_rounded rounds the sum in fp32 of rounded numbers, over each transport", "[collective]") {
  for (const Transport transport : transports()) {
    for (const int size : {2, 3}) {
      for (const std::size_t n : {std::size_t{1}, std::size_t{1001}, std::size_t{1'500'003}}) {
        INFO(static_cast<int>(transport) << ": " << size << " ranks, " << n << " numbers");
        const auto values = [n](int rank) { return terms(rank, n); };
        float largest = 0;
        for (int rank = 0; rank < size; ++rank)
          largest = std::max(largest, collective::largest_magnitude(values(rank)));
        const float scale = collective::scale_to_fp16(largest, size);
        std::vector<float> in_bf16(n), in_fp16(n);
        for (std::size_t i = 0; i < n; ++i) {
          float wide = 0, scaled = 0;
          for (int rank = 0; rank < size; ++rank) {
            wide += to_bf16(term(rank, i, 1));
            scaled += to_fp16(term(rank, i, 1) * scale);
          }
          in_bf16[i] = to_bf16(wide);
          in_fp16[i] = to_fp16(scaled) / scale;
        }
        CHECK((summed(size, transport, Precision::bf16, values) == in_bf16));
        CHECK((summed(size, transport, Precision::fp16, values) == in_fp16));
      }
    }
  }
}

TEST_CASE("sums in fp16 are as exact as fp16, however large or small the numbers are", "[collective]") {
  constexpr std::size_t kNumbers = 5000;
  for (const float unit : {1e-42F, 1e-20F, 1.0F, 1e20F, 1e32F}) {
    const std::vector<float> sums =
        summed(3, Transport::host, Precision::fp16, [&](int rank) { return terms(rank, kNumbers, unit); });
    double largest = 0;
    for (int rank = 0; rank < 3; ++rank)
      largest = std::max<double>(largest, collective::largest_magnitude(terms(rank, kNumbers, unit)));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kNumbers; ++i) {
      double sum = 0, magnitudes = 0;
      for (int rank = 0; rank < 3; ++rank) {
        sum += term(rank, i, unit);
        magnitudes += std::abs(term(rank, i, unit));
      }
      // Half a step of each number and of the sum; the smallest step is 2^-24, where the largest sum is above 2^13.
      // Numbers below fp32's normal ones have steps of their own.
      const double step = std::max(3 * largest * std::ldexp(1.0, -37), 1e-44);
      const double bound = std::ldexp(magnitudes + std::abs(sum), -11) * 1.001 + 2 * step;
      if (!(std::abs(sums[i] - sum) <= bound)) ++wrong;
    }
    INFO(unit);
    CHECK(wrong == 0);
  }
}

TEST_CASE("NaN and infinities stay in sums of 16 bits, and leave the others as they are", "[collective]") {
  for (const Transport transport : transports()) {
    for (const Precision precision : {Precision::bf16, Precision::fp16}) {
      const std::vector<float> sums = summed(2, transport, precision, [](int rank) {
        const float sign = rank == 0 ? 1.0F : -1.0F;
        return std::vector<float>{rank == 0 ? kNan : 1.0F, rank == 1 ? kInfinity : 0.0F, kInfinity * sign, 1e-3F,
                                  3e38F};
      });
      CHECK(std::isnan(sums[0]));
      CHECK(sums[1] == kInfinity);
      CHECK(std::isnan(sums[2]));
      CHECK(sums[4] == kInfinity);  // as in fp32
      if (precision == Precision::bf16) CHECK(sums[3] == Approx(2e-3).epsilon(0.004));
      const std::vector<float> small = summed(2, transport, precision, [](int rank) {
        return std::vector<float>{rank == 0 ? kInfinity : 1.0F, 1e-8F};
      });
      CHECK(small[0] == kInfinity);
      CHECK(small[1] == Approx(2e-8).epsilon(0.004));
    }
  }
}

TEST_CASE("ranks exchange rounded numbers in two precisions", "[collective]") {
  const auto errors = on_ranks(2, [](const GroupPtr& group) {
    std::vector<float> values(3);
    group->all_reduce_rounded(values, Precision::tf32);
  });
  for (const std::string& error : errors) CHECK_THAT(error, contains("in bf16 or fp16 only"));
}
