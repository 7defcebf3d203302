// The bounds, as those of scalar functions (graph/scalar_function_list.hpp): twice what a sweep of all exponents shows
// on processors, or what OpenCL allows where a function is one of its operations (divisions of 2.5 ULP, square roots of
// 3).
#include "concord/ops/accuracy.hpp"

#include <array>
#include <vector>

namespace concord {
namespace {

constexpr std::array kTable = {
    // Functions and activations made of scalar functions.
    FunctionAccuracy{"square", 0.5, 0.5},
    FunctionAccuracy{"relu", 0, 0},
    FunctionAccuracy{"relu6", 0, 0},
    FunctionAccuracy{"leaky_relu", 0.5, 0},
    FunctionAccuracy{"hardtanh", 0, 0},
    FunctionAccuracy{"hard_sigmoid", 3, 2.5},
    FunctionAccuracy{"hard_swish", 4, 5, 0, -1.5},
    FunctionAccuracy{"elu", 3, 2},
    FunctionAccuracy{"celu", 3, 2},
    FunctionAccuracy{"selu", 6, 4},
    FunctionAccuracy{"mish", 12, 24, 0, -1.192407},
    FunctionAccuracy{"log_sigmoid", 4, 5},
    FunctionAccuracy{"softsign", 5, 8},
    FunctionAccuracy{"tan", 12, 24},
    FunctionAccuracy{"exp2", 4, 6},
    FunctionAccuracy{"log10", 4, 5},
    FunctionAccuracy{"pow(x, -3)", 6, 12},
    FunctionAccuracy{"pow(x, 8)", 6, 9},
    // Losses of a logit for targets of 0 and 1.
    FunctionAccuracy{"bce_with_logits", 5, 6},
    FunctionAccuracy{"focal", 24, 32},
};

}  // namespace

std::span<const FunctionAccuracy> function_accuracy() {
  static const std::vector<FunctionAccuracy> all = [] {
    const auto scalars = scalar_function_accuracy();
    std::vector<FunctionAccuracy> list(scalars.begin(), scalars.end());
    list.insert(list.end(), kTable.begin(), kTable.end());
    return list;
  }();
  return all;
}

}  // namespace concord
