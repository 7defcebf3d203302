// Muon: momentum whose matrix is made nearly orthogonal before it is added.
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/optim/formulas.hpp"
#include "concord/optim/norm.hpp"

namespace concord::optim {
namespace {

/// Newton–Schulz iteration of the fifth degree towards the nearest orthogonal matrix of x (rows, columns), on the side
/// whose Gram matrix is the smaller one.
Value orthogonal(Value x, const Muon& p) {
  const bool tall = x.shape()[0] > x.shape()[1];
  const auto [a, b, c] = p.coefficients;
  x = pointwise("muon_scaled", {x, norm_of(x)},
                scalar::input(0) / divisor(scalar::max(scalar::input(1), number(p.eps)), 0));
  // Of a norm beyond fp32 the largest number of fp32 was taken.
  x = pointwise("muon_rescaled", {x, norm_of(x)}, scalar::input(0) / scalar::max(scalar::input(1), 1.0F));
  for (int i = 0; i < p.iterations; ++i) {
    const Value gram = matmul(x, x, tall, !tall);
    const Value polynomial = pointwise("muon_polynomial", {gram, matmul(gram, gram)},
                                       number(b) * scalar::input(0) + number(c) * scalar::input(1));
    const Value product = tall ? matmul(x, polynomial) : matmul(polynomial, x);
    x = pointwise("muon_step", {x, product}, number(a) * scalar::input(0) + scalar::input(1));
  }
  return x;
}

double rate_ratio(Muon::Rate rate, double rows, double columns) {
  switch (rate) {
    case Muon::Rate::original: return std::sqrt(std::max(1.0, rows / columns));
    case Muon::Rate::match_rms_adamw: return 0.2 * std::sqrt(std::max(rows, columns));
    case Muon::Rate::spectral: return std::sqrt(rows / columns);
  }
  throw ArgumentError("unknown rate of Muon");
}

Rule matrix_rule(const Muon& p, const Shape& shape) {
  CONCORD_CHECK(shape.rank() >= 2, ArgumentError,
                "Muon is for matrices, not for parameters of shape {}: give them another optimizer in a group (match = "
                "optim::vectors())",
                shape.str());
  const std::int64_t rows = shape[0], columns = shape.elements() / rows;
  const double ratio = rate_ratio(p.rate, static_cast<double>(rows), static_cast<double>(columns));
  const auto buffer = [p](const UpdateTerms& terms) { return moved(terms.states[0], terms.gradient, p.momentum); };
  Rule rule{"muon", p.lr, {{"momentum_buffer"}}};
  rule.stage = [=](const ParameterStep& step) -> Staged {
    const Value direction = step.elementwise("muon_momentum", {}, [&](const UpdateTerms& terms) {
      return p.nesterov ? moved(terms.gradient, buffer(terms), 1 - p.momentum) : buffer(terms);
    });
    return {{reshape(orthogonal(reshape(direction, Shape{rows, columns}), p), shape)}};
  };
  rule.update = [=](const UpdateTerms& terms) -> std::vector<Scalar> {
    return {shrunk(terms, p.weight_decay) - terms.lr * number(ratio) * terms.staged[0], buffer(terms)};
  };
  return rule;
}

}  // namespace

Rule Muon::rule() const {
  check_range("Muon", "lr", lr);
  check_range("Muon", "momentum", momentum, 1);
  check_range("Muon", "weight_decay", weight_decay);
  check_range("Muon", "eps", eps);
  CONCORD_CHECK(iterations >= 1 && iterations < 100, ArgumentError, "Muon: {} iterations, must be in [1, 100)",
                iterations);
  Rule rule{"muon", lr};
  rule.for_shape = [p = *this](const Shape& shape) { return matrix_rule(p, shape); };
  return rule;
}

}  // namespace concord::optim
