// The table of functions in double precision.
#include "ops/exact_functions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "concord/nn/distribution_loss.hpp"
#include "concord/nn/loss.hpp"
#include "concord/ops/activations.hpp"
#include "concord/ops/elementary.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::test {
namespace {

constexpr D kInf = std::numeric_limits<D>::infinity();

D sigma(D x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
D bell(D x) { return sigma(x) * sigma(-x); }
D softplus_of(D x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
D cdf(D x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
D pdf(D x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); }
D times(D x, D y) { return x == 0 || y == 0 ? 0 : x * y; }
D sech2(D x) { return 4 * bell(2 * x); }
D gate(D x) { return 2 * std::sqrt(2 / std::numbers::pi) * x * (1 + 0.044715 * x * x); }
D gate_slope(D x) { return 2 * std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x); }

Value at_target(const Loss& loss, Value x, float target) { return loss(x, full(x.graph(), x.shape(), target)); }

const std::vector<ExactFunction> kWritten = {
    {"abs", nullptr, [](D x) { return std::abs(x); }, [](D x) { return x > 0   ? 1.0
                                                                       : x < 0 ? -1.0
                                                                               : 0.0; }},
    {"exp", nullptr, [](D x) { return std::exp(x); }, [](D x) { return std::exp(x); }, [](D x) { return std::exp(x); }},
    {"expm1", nullptr, [](D x) { return std::expm1(x); }, [](D x) { return std::exp(x); },
     [](D x) { return std::exp(x); }},
    {"log", nullptr, [](D x) { return std::log(x); }, [](D x) { return 1 / x; }, [](D x) { return -1 / (x * x); }},
    {"log1p", nullptr, [](D x) { return std::log1p(x); }, [](D x) { return 1 / (1 + x); },
     [](D x) { return -1 / ((1 + x) * (1 + x)); }},
    {"sqrt", nullptr, [](D x) { return std::sqrt(x); }, [](D x) { return 0.5 / std::sqrt(x); },
     [](D x) { return -0.25 / (x * std::sqrt(x)); }},
    {"rsqrt", nullptr, [](D x) { return 1 / std::sqrt(x); }, [](D x) { return -0.5 / (x * std::sqrt(x)); },
     [](D x) { return 0.75 / (x * x * std::sqrt(x)); }},
    {"sin", nullptr, [](D x) { return std::sin(x); }, [](D x) { return std::cos(x); },
     [](D x) { return -std::sin(x); }},
    {"cos", nullptr, [](D x) { return std::cos(x); }, [](D x) { return -std::sin(x); },
     [](D x) { return -std::cos(x); }},
    {"tanh", nullptr, [](D x) { return std::tanh(x); }, sech2, [](D x) { return -2 * times(sech2(x), std::tanh(x)); }},
    {"erf", nullptr, [](D x) { return std::erf(x); },
     [](D x) { return 2 * std::numbers::inv_sqrtpi * std::exp(-x * x); },
     [](D x) { return -4 * std::numbers::inv_sqrtpi * times(x, std::exp(-x * x)); }},
    {"normal_cdf", nullptr, cdf, pdf, [](D x) { return -times(x, pdf(x)); }},
    {"sigmoid", nullptr, sigma, bell, [](D x) { return -bell(x) * std::tanh(x / 2); }},
    {"softplus", nullptr, softplus_of, sigma, bell},
    {"floor", nullptr, [](D x) { return std::floor(x); }, [](D) { return 0.0; }},
    {"square", [](Value x) { return square(x); }, [](D x) { return x * x; }, [](D x) { return 2 * x; }},
    {"relu", [](Value x) { return relu(x); }, [](D x) { return x >= 0  ? x
                                                               : x < 0 ? 0
                                                                       : x; },
     [](D x) { return x > 0 ? 1.0 : 0.0; }},
    {"relu6", [](Value x) { return relu6(x); }, [](D x) { return x <= 0   ? 0
                                                                 : x >= 6 ? 6
                                                                          : x; },
     [](D x) { return x <= 0 || x >= 6 ? 0.0 : 1.0; }},
    {"leaky_relu", [](Value x) { return leaky_relu(x, 0.25F); }, [](D x) { return x > 0 ? x : 0.25 * x; },
     [](D x) { return x > 0 ? 1.0 : 0.25; }},
    {"hardtanh", [](Value x) { return hardtanh(x); }, [](D x) { return x <= -1  ? -1
                                                                       : x >= 1 ? 1
                                                                                : x; },
     [](D x) { return x <= -1 || x >= 1 ? 0.0 : 1.0; }},
    {"hard_sigmoid", [](Value x) { return hard_sigmoid(x); },
     [](D x) { return x <= -3  ? 0
                      : x >= 3 ? 1
                               : (x + 3) / 6; }, [](D x) { return x <= -3 || x >= 3 ? 0.0 : 1.0 / 6; }},
    {"hard_swish", [](Value x) { return hard_swish(x); },
     [](D x) { return x <= -3  ? 0
                      : x >= 3 ? x
                               : x * (x + 3) / 6; },
     [](D x) { return x <= -3  ? 0.0
                      : x >= 3 ? 1.0
                               : (2 * x + 3) / 6; }},
    {"elu", [](Value x) { return elu(x); }, [](D x) { return x > 0 ? x : std::expm1(x); },
     [](D x) { return x > 0 ? 1.0 : std::exp(x); }},
    {"celu", [](Value x) { return celu(x); }, [](D x) { return x > 0 ? x : std::expm1(x); },
     [](D x) { return x > 0 ? 1.0 : std::exp(x); }},
    {"selu", [](Value x) { return selu(x); }, [](D x) { return kSelu * (x > 0 ? x : kAlpha * std::expm1(x)); },
     [](D x) { return kSelu * (x > 0 ? 1 : kAlpha * std::exp(x)); }},
    {"gelu", [](Value x) { return gelu(x); }, [](D x) { return times(x, cdf(x)); },
     [](D x) { return cdf(x) + times(x, pdf(x)); }, [](D x) { return times(pdf(x), 2 - x * x); }},
    {"gelu_tanh", [](Value x) { return gelu_tanh(x); }, [](D x) { return times(x, sigma(gate(x))); },
     [](D x) { return sigma(gate(x)) + times(x * gate_slope(x), bell(gate(x))); },
     [](D x) {
       const D z = gate(x), d = gate_slope(x), dd = 12 * std::sqrt(2 / std::numbers::pi) * 0.044715 * x;
       return times(bell(z), 2 * d + x * (dd - d * d * std::tanh(z / 2)));
     }},
    {"silu", [](Value x) { return silu(x); }, [](D x) { return times(x, sigma(x)); },
     [](D x) { return sigma(x) + times(x, bell(x)); }, [](D x) { return times(bell(x), 2 - x * std::tanh(x / 2)); }},
    {"mish", [](Value x) { return mish(x); }, [](D x) { return times(x, std::tanh(softplus_of(x))); },
     [](D x) { return std::tanh(softplus_of(x)) + times(x, sech2(softplus_of(x)) * sigma(x)); }},
    {"log_sigmoid", [](Value x) { return log_sigmoid(x); }, [](D x) { return -softplus_of(-x); },
     [](D x) { return sigma(-x); }},
    {"softsign", [](Value x) { return softsign(x); },
     [](D x) { return std::isinf(x) ? std::copysign(1.0, x) : x / (1 + std::abs(x)); },
     [](D x) { return 1 / ((1 + std::abs(x)) * (1 + std::abs(x))); }},
    {"tan", [](Value x) { return tan(x); }, [](D x) { return std::tan(x); },
     [](D x) { return 1 + std::tan(x) * std::tan(x); }},
    {"exp2", [](Value x) { return exp2(x); }, [](D x) { return std::exp2(x); },
     [](D x) { return x >= 128 ? kInf : std::numbers::ln2 * std::exp2(x); }},  // out of range with the function
    {"log10", [](Value x) { return log10(x); }, [](D x) { return std::log10(x); },
     [](D x) { return 1 / (x * std::numbers::ln10); }},
    {"pow(x, -3)", [](Value x) { return pow(x, -3); }, [](D x) { return std::pow(x, -3); },
     [](D x) { return -3 * std::pow(x, -4); }},
    {"pow(x, 8)", [](Value x) { return pow(x, 8); }, [](D x) { return std::pow(x, 8); },
     [](D x) { return 8 * std::pow(x, 7); }},
    {"bce_with_logits",
     [](Value x) { return at_target(loss::BceWithLogits{.reduction = loss::Reduction::none}, x, 0); }, softplus_of,
     sigma, nullptr, true},
    {"bce_with_logits",
     [](Value x) { return at_target(loss::BceWithLogits{.reduction = loss::Reduction::none}, x, 1); },
     [](D x) { return softplus_of(-x); }, [](D x) { return -sigma(-x); }, nullptr, true},
    {"focal",
     [](Value x) { return at_target(loss::Focal{.alpha = -1, .gamma = 2, .reduction = loss::Reduction::none}, x, 1); },
     [](D x) { return times(sigma(-x) * sigma(-x), softplus_of(-x)); },
     [](D x) { return -times(2 * sigma(-x) * bell(x), softplus_of(-x)) - sigma(-x) * sigma(-x) * sigma(-x); }, nullptr,
     true},
};

/// A formula of one number in double precision.
ExactFunction::Right exactly(const Scalar& formula) {
  return [expression = Expression({formula}, 1)](D x) {
    std::vector<D> values;
    for (const Expression::Instruction& one : expression.code()) {
      D arguments[3] = {0, 0, 0};
      for (std::size_t i = 0; i < 3 && one.arguments[i] >= 0; ++i) {
        arguments[i] = values[static_cast<std::size_t>(one.arguments[i])];
      }
      if (one.function == ScalarFunction::input) {
        values.push_back(x);
      } else if (one.function == ScalarFunction::constant) {
        values.push_back(one.value);
      } else {
        values.push_back(evaluate_exactly(one.function, arguments));
      }
    }
    return values[static_cast<std::size_t>(expression.results()[0])];
  };
}

}  // namespace

const FunctionAccuracy& accuracy_of(std::string_view name) {
  for (const FunctionAccuracy& row : function_accuracy()) {
    if (row.name == name) return row;
  }
  FAIL("no bound for " << name);
  return function_accuracy().front();
}

std::vector<ExactFunction> exact_functions() {
  std::vector<ExactFunction> all = kWritten;
  for (const ScalarFunctionInfo& info : scalar_functions()) {
    // Slopes are held as those of their functions.
    if (info.arity != 1 || info.name.ends_with("_slope")) continue;
    if (std::ranges::find(kWritten, info.name, &ExactFunction::name) != kWritten.end()) continue;
    const Scalar value = scalar::apply(info.function, {scalar::input(0)}), slope = derivative(value, 0);
    all.push_back({info.name, nullptr, exactly(value), exactly(slope)});
    if (accuracy_of(info.name).curve_ulps > 0) all.back().curve = exactly(derivative(slope, 0));
  }
  return all;
}

}  // namespace concord::test
