// The functions for results of 16 bits, within their bounds. On NVIDIA's GPUs, whose instructions they are,
// ops/joined_products.cpp runs them.
#include "shared/short_math.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "concord_test.hpp"

namespace concord::test {
namespace {

double below(double u) { return 0.5 * std::erfc(u / std::numbers::sqrt2); }
double density(double u) { return std::exp(-0.5 * u * u) / std::sqrt(2 * std::numbers::pi); }
double exponent(double u) { return 2 * std::sqrt(2 / std::numbers::pi) * u * (1 + 0.044715 * u * u); }
double exponent_slope(double u) { return 2 * std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * u * u); }
double logistic_below(double u) { return 1 / (1 + std::exp(exponent(u))); }

struct ShortFunction {
  const char* name;
  float (*function)(float);
  double (*exact_below)(double u);  // of -u, as max(a, 0) or 1 minus it is of u
  double (*scale)(double u);        // what errors are relative to
  bool is_slope;
  double near, far;  // sizes of arguments
  double near_bound, far_bound;
};

const ShortFunction kFunctions[] = {
    {"gelu", [](float a) { return concord_short_gelu(a); }, [](double u) { return -u * below(u); },
     [](double u) { return u * below(u); }, false, 5.5, 9, 0x1p-15, 0x1p-11},
    {"gelu_slope", [](float a) { return concord_short_gelu_slope(a); },
     [](double u) { return below(u) - u * density(u); }, [](double u) { return below(u) + u * density(u); }, true, 5.5,
     9, 0x1p-14, 0x1p-11},
    {"gelu_tanh", [](float a) { return concord_short_gelu_tanh(a); }, [](double u) { return -u * logistic_below(u); },
     [](double u) { return u * logistic_below(u); }, false, 4, 6, 0x1p-13, 0x1p-9},
    {"gelu_tanh_slope", [](float a) { return concord_short_gelu_tanh_slope(a); },
     [](double u) {
       const double q = logistic_below(u);
       return q - u * exponent_slope(u) * q * (1 - q);
     },
     [](double u) { return logistic_below(u) * (1 + u * exponent_slope(u)); }, true, 4, 6, 0x1p-13, 0x1p-9},
};

}  // namespace

TEST_CASE("functions for results of 16 bits are within their bounds", "[opencl][short_math]") {
  for (const ShortFunction& f : kFunctions) {
    INFO(f.name);
    for (int i = 0; i <= 14'000; ++i) {
      const float u = static_cast<float>(i) * 1e-3F;
      const double exact = f.exact_below(u);
      const double bound = u <= f.near ? f.near_bound * f.scale(u) : u <= f.far ? f.far_bound * f.scale(u) : 1e-9;
      const double of_fp32 = 0x1p-23 * (f.is_slope ? 1.0 : u);
      INFO(u);
      CHECK(std::abs(f.function(-u) - exact) <= bound + 0x1p-126);
      CHECK(std::abs(f.function(u) - (f.is_slope ? 1 - exact : u + exact)) <= bound + of_fp32);
    }
  }
}

TEST_CASE("functions for results of 16 bits end as their limits and keep NaN", "[opencl][short_math]") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const ShortFunction& f : kFunctions) {
    INFO(f.name);
    for (const float a : {14.0F, 100.0F, 3e38F, kInf}) {
      CHECK(f.function(a) == (f.is_slope ? 1.0F : a));
      CHECK(f.function(-a) == 0.0F);
    }
    CHECK(std::isnan(f.function(std::numeric_limits<float>::quiet_NaN())));
  }
}

}  // namespace concord::test
