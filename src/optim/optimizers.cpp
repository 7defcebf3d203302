// The formulas of the optimizers, in the order of PyTorch's operations so that results agree to rounding.
#include "concord/optim/optimizers.hpp"

#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"

namespace concord::optim {
namespace {

using scalar::select;
using scalar::sqrt;

void check_range(const char* optimizer, const char* parameter, double value, double below) {
  CONCORD_CHECK(value >= 0 && value < below, ArgumentError, "{}: {} is {}, must be in [0, {})", optimizer, parameter,
                value, below);
}

Scalar number(double value) { return static_cast<float>(value); }

/// gradient + decay·weight.
Scalar decayed(const UpdateTerms& terms, double weight_decay) {
  return weight_decay == 0 ? terms.gradient : terms.gradient + number(weight_decay) * terms.weight;
}

/// a moved towards b by the fraction 1 − keep.
Scalar moved(const Scalar& a, const Scalar& b, double keep) { return a + number(1 - keep) * (b - a); }

/// 1 − beta^step, exact for small steps too: the logarithm is taken in double, and no 1 − (almost 1) is computed.
Scalar bias_correction(double beta, const Scalar& step) {
  const double log_beta = std::max(std::log(beta), -1e4);  // finite for beta = 0
  return -scalar::expm1(step * number(log_beta));
}

/// Adam and AdamW differ in how weight decay enters.
Rule adam_rule(const char* name, const Adam& p, bool decoupled) {
  check_range(name, "lr", p.lr, INFINITY);
  check_range(name, "betas.first", p.betas.first, 1);
  check_range(name, "betas.second", p.betas.second, 1);
  check_range(name, "eps", p.eps, INFINITY);
  check_range(name, "weight_decay", p.weight_decay, INFINITY);
  Rule rule{name, p.lr, {{"exp_avg"}, {"exp_avg_sq"}}, {}, {}};
  if (p.amsgrad) rule.states.push_back({"max_exp_avg_sq"});
  rule.shared = [p](const Scalar& lr, const Scalar& step) -> std::vector<Scalar> {
    return {lr / bias_correction(p.betas.first, step), sqrt(bias_correction(p.betas.second, step))};
  };
  rule.update = [p, decoupled](const UpdateTerms& terms) {
    const Scalar& step_size = terms.shared[0];
    const Scalar& root_correction = terms.shared[1];
    const Scalar gradient = decoupled ? terms.gradient : decayed(terms, p.weight_decay);
    const Scalar weight = decoupled ? terms.weight * (1.0F - terms.lr * number(p.weight_decay)) : terms.weight;
    const Scalar mean = moved(terms.states[0], gradient, p.betas.first);
    const Scalar square = terms.states[1] * number(p.betas.second) + number(1 - p.betas.second) * gradient * gradient;
    std::vector<Scalar> results{weight, mean, square};
    if (p.amsgrad) results.push_back(scalar::max(terms.states[2], square));
    results[0] = weight - step_size * mean / (sqrt(results.back()) / root_correction + number(p.eps));
    return results;
  };
  return rule;
}

}  // namespace

Rule Sgd::rule() const {
  check_range("Sgd", "lr", lr, INFINITY);
  check_range("Sgd", "momentum", momentum, INFINITY);
  check_range("Sgd", "weight_decay", weight_decay, INFINITY);
  CONCORD_CHECK(!nesterov || (momentum > 0 && dampening == 0), ArgumentError,
                "Sgd: nesterov needs momentum > 0 and dampening 0, got {} and {}", momentum, dampening);
  Rule rule{"sgd", lr, {}, {}, {}};
  if (momentum == 0) {
    rule.update = [p = *this](const UpdateTerms& terms) -> std::vector<Scalar> {
      return {terms.weight - terms.lr * decayed(terms, p.weight_decay)};
    };
    return rule;
  }
  rule.states = {{"momentum_buffer"}};
  if (dampening != 0) {  // the first step takes the gradient whole
    rule.shared = [p = *this](const Scalar&, const Scalar& step) -> std::vector<Scalar> {
      return {select(scalar::less_equal(step, 1.0F), 1.0F, number(1 - p.dampening))};
    };
  }
  rule.update = [p = *this](const UpdateTerms& terms) -> std::vector<Scalar> {
    const Scalar gradient = decayed(terms, p.weight_decay);
    const Scalar added = p.dampening == 0 ? gradient : terms.shared[0] * gradient;
    const Scalar buffer = number(p.momentum) * terms.states[0] + added;
    const Scalar direction = p.nesterov ? gradient + number(p.momentum) * buffer : buffer;
    return {terms.weight - terms.lr * direction, buffer};
  };
  return rule;
}

Rule Adam::rule() const { return adam_rule("adam", *this, false); }

Rule AdamW::rule() const { return adam_rule("adamw", {lr, betas, eps, weight_decay, amsgrad}, true); }

Rule RMSprop::rule() const {
  check_range("RMSprop", "lr", lr, INFINITY);
  check_range("RMSprop", "alpha", alpha, INFINITY);
  check_range("RMSprop", "eps", eps, INFINITY);
  check_range("RMSprop", "momentum", momentum, INFINITY);
  check_range("RMSprop", "weight_decay", weight_decay, INFINITY);
  Rule rule{"rmsprop", lr, {{"square_avg"}}, {}, {}};
  if (centered) rule.states.push_back({"grad_avg"});
  if (momentum > 0) rule.states.push_back({"momentum_buffer"});
  rule.update = [p = *this](const UpdateTerms& terms) {
    const Scalar gradient = decayed(terms, p.weight_decay);
    const Scalar square = terms.states[0] * number(p.alpha) + number(1 - p.alpha) * gradient * gradient;
    std::vector<Scalar> results{terms.weight, square};
    Scalar variance = square;
    if (p.centered) {
      const Scalar mean = moved(terms.states[1], gradient, p.alpha);
      variance = square - mean * mean;
      results.push_back(mean);
    }
    Scalar direction = gradient / (sqrt(variance) + number(p.eps));
    if (p.momentum > 0) {
      direction = number(p.momentum) * terms.states.back() + direction;
      results.push_back(direction);
    }
    results[0] = terms.weight - terms.lr * direction;
    return results;
  };
  return rule;
}

Rule Adagrad::rule() const {
  check_range("Adagrad", "lr", lr, INFINITY);
  check_range("Adagrad", "lr_decay", lr_decay, INFINITY);
  check_range("Adagrad", "eps", eps, INFINITY);
  check_range("Adagrad", "initial_accumulator", initial_accumulator, INFINITY);
  check_range("Adagrad", "weight_decay", weight_decay, INFINITY);
  Rule rule{"adagrad", lr, {{"sum", static_cast<float>(initial_accumulator)}}, {}, {}};
  rule.shared = [p = *this](const Scalar& rate, const Scalar& step) -> std::vector<Scalar> {
    return {rate / (1.0F + (step - 1.0F) * number(p.lr_decay))};
  };
  rule.update = [p = *this](const UpdateTerms& terms) -> std::vector<Scalar> {
    const Scalar gradient = decayed(terms, p.weight_decay);
    const Scalar total = terms.states[0] + gradient * gradient;
    return {terms.weight - terms.shared[0] * gradient / (sqrt(total) + number(p.eps)), total};
  };
  return rule;
}

}  // namespace concord::optim
