// The names of the scalar functions that have a formula `concord_<name>` in cl_kernels/shared/formulas.h. The enumeration, the
// C++ functions of scalar:: and the CPU's loops follow from these lists; what else a function has is its row in
// scalar_functions.cpp.
#pragma once

// Of one argument. normal_cdf: Φ(a), the standard normal distribution function. sigmoid_slope: sigmoid(a)·sigmoid(-a).
// gelu: a·Φ(a); gelu_tanh: its approximation by tanh; silu: a·sigmoid(a); each 0 at -∞, with its derivative,
// name_slope. softplus: log(1 + exp(a)). is_finite: 1 where a is finite, else 0.
#define CONCORD_UNARY_FUNCTIONS(FUNCTION)                                                                       \
  FUNCTION(abs)                                                                                                 \
  FUNCTION(exp) FUNCTION(expm1) FUNCTION(log) FUNCTION(log1p) FUNCTION(sqrt) FUNCTION(rsqrt) FUNCTION(sin)      \
      FUNCTION(cos) FUNCTION(tanh) FUNCTION(erf) FUNCTION(normal_cdf) FUNCTION(sigmoid) FUNCTION(sigmoid_slope) \
          FUNCTION(softplus) FUNCTION(gelu) FUNCTION(gelu_slope) FUNCTION(gelu_tanh) FUNCTION(gelu_tanh_slope)  \
              FUNCTION(silu) FUNCTION(silu_slope) FUNCTION(floor) FUNCTION(is_finite)

// Of two arguments. minimum, maximum: NaN if either is. power: a raised to b, as pow in C. exp_product: exp(a·b) with
// all bits of the product, for densities such as exp(-x²).
#define CONCORD_BINARY_FUNCTIONS(FUNCTION) FUNCTION(minimum) FUNCTION(maximum) FUNCTION(power) FUNCTION(exp_product)
