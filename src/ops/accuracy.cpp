// The bounds: twice what a sweep of all exponents shows on processors, or what OpenCL allows where a function is one of
// its operations (divisions of 2.5 ULP, square roots of 3).
#include "concord/ops/accuracy.hpp"

#include <array>

namespace concord {
namespace {

constexpr std::array kTable = {
    // Operators.
    FunctionAccuracy{"add", 0.5, 0},
    FunctionAccuracy{"subtract", 0.5, 0},
    FunctionAccuracy{"multiply", 0.5, 0},
    FunctionAccuracy{"divide", 2.5, 5},
    FunctionAccuracy{"minimum", 0, 0},
    FunctionAccuracy{"maximum", 0, 0},
    FunctionAccuracy{"negate", 0, 0},
    FunctionAccuracy{"less", 0, 0},
    FunctionAccuracy{"less_equal", 0, 0},
    FunctionAccuracy{"equal", 0, 0},
    FunctionAccuracy{"select", 0, 0},
    FunctionAccuracy{"is_finite", 0, 0},
    // Scalar functions.
    FunctionAccuracy{"abs", 0, 0},
    FunctionAccuracy{"exp", 2, 2, 2},
    FunctionAccuracy{"expm1", 3, 2, 2},
    FunctionAccuracy{"exp_product", 2, 3},
    FunctionAccuracy{"log", 2, 2.5, 5},
    FunctionAccuracy{"log1p", 3, 3, 6},
    FunctionAccuracy{"sqrt", 3, 6, 14},
    FunctionAccuracy{"rsqrt", 6, 9, 14},
    FunctionAccuracy{"sin", 4, 4, 4},
    FunctionAccuracy{"cos", 4, 4, 4},
    FunctionAccuracy{"tanh", 3, 8, 12},
    FunctionAccuracy{"erf", 6, 4, 5},
    FunctionAccuracy{"normal_cdf", 16, 4, 5},
    FunctionAccuracy{"sigmoid", 5, 8, 12},
    FunctionAccuracy{"sigmoid_slope", 8, 12},
    FunctionAccuracy{"softplus", 4, 5, 8},
    FunctionAccuracy{"power", 4, 128},
    FunctionAccuracy{"floor", 0, 0},
    FunctionAccuracy{"square", 0.5, 0.5},
    // Activations.
    FunctionAccuracy{"relu", 0, 0},
    FunctionAccuracy{"relu6", 0, 0},
    FunctionAccuracy{"leaky_relu", 0.5, 0},
    FunctionAccuracy{"hardtanh", 0, 0},
    FunctionAccuracy{"hard_sigmoid", 3, 2.5},
    FunctionAccuracy{"hard_swish", 4, 5, 0, -1.5},
    FunctionAccuracy{"elu", 3, 2},
    FunctionAccuracy{"celu", 3, 2},
    FunctionAccuracy{"selu", 6, 4},
    FunctionAccuracy{"gelu", 16, 20, 8, -0.751792},
    FunctionAccuracy{"gelu_tanh", 6, 20, 512, -0.752461},
    FunctionAccuracy{"gelu_slope", 20, 8, 0, -0.751792},
    FunctionAccuracy{"gelu_tanh_slope", 20, 512, 0, -0.752461},
    FunctionAccuracy{"silu_slope", 10, 20, 0, -1.278465},
    FunctionAccuracy{"silu", 6, 10, 20, -1.278465},
    FunctionAccuracy{"mish", 12, 24, 0, -1.192407},
    FunctionAccuracy{"log_sigmoid", 4, 5},
    FunctionAccuracy{"softsign", 5, 8},
    // Losses of a logit for targets of 0 and 1.
    FunctionAccuracy{"bce_with_logits", 5, 6},
    FunctionAccuracy{"focal", 24, 32},
};

}  // namespace

std::span<const FunctionAccuracy> function_accuracy() { return kTable; }

}  // namespace concord
