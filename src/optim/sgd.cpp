// Gradient descent and the rules next to it that keep one moment: SGD, LARS, Lion.
#include "concord/optim/formulas.hpp"
#include "concord/optim/norm.hpp"

namespace concord::optim {

Rule Sgd::rule() const {
  check_range("Sgd", "lr", lr);
  check_range("Sgd", "momentum", momentum);
  check_range("Sgd", "weight_decay", weight_decay);
  CONCORD_CHECK(!nesterov || (momentum > 0 && dampening == 0), ArgumentError,
                "Sgd: nesterov needs momentum > 0 and dampening 0, got {} and {}", momentum, dampening);
  Rule rule{"sgd", lr};
  if (momentum == 0) {
    rule.update = [p = *this](const UpdateTerms& terms) -> std::vector<Scalar> {
      return {kept(terms.weight - terms.lr * decayed(terms, p.weight_decay))};
    };
    return rule;
  }
  rule.states = {{"momentum_buffer"}};
  if (dampening != 0) {  // the first step takes the gradient whole
    rule.shared = [p = *this](const SharedTerms& terms) -> std::vector<Scalar> {
      return {scalar::select(scalar::less_equal(terms.step, 1.0F), 1.0F, number(1 - p.dampening))};
    };
  }
  rule.update = [p = *this](const UpdateTerms& terms) -> std::vector<Scalar> {
    const Scalar gradient = decayed(terms, p.weight_decay);
    const Scalar added = p.dampening == 0 ? gradient : terms.shared[0] * gradient;
    const Scalar buffer = kept(number(p.momentum) * terms.states[0] + added);
    const Scalar direction = p.nesterov ? kept(gradient + number(p.momentum) * buffer) : buffer;
    return {kept(terms.weight - terms.lr * direction), buffer};
  };
  return rule;
}

Rule Lars::rule() const {
  check_range("Lars", "lr", lr);
  check_range("Lars", "momentum", momentum);
  check_range("Lars", "weight_decay", weight_decay);
  check_range("Lars", "trust", trust);
  check_range("Lars", "eps", eps);
  Rule rule{"lars", lr, {{"momentum_buffer"}}};
  rule.stage = [](const ParameterStep& step) -> Staged { return {{norm_of(step.weight), norm_of(step.gradient)}}; };
  rule.update = [p = *this](const UpdateTerms& terms) -> std::vector<Scalar> {
    const Scalar &weight_norm = terms.staged[0], &gradient_norm = terms.staged[1];
    const Scalar size = kept(gradient_norm + number(p.weight_decay) * weight_norm + number(p.eps));
    const Scalar usable = scalar::less(0.0F, weight_norm) * scalar::less(0.0F, gradient_norm);
    // decayed/size is at most 1, so that nothing leaves fp32 before it is multiplied by the norm of the weights.
    const Scalar gradient = decayed(terms, p.weight_decay);
    const Scalar direction = scalar::select(usable, number(p.trust) * weight_norm * (gradient / size), gradient);
    const Scalar buffer = kept(number(p.momentum) * terms.states[0] + terms.lr * direction);
    return {kept(terms.weight - buffer), buffer};
  };
  return rule;
}

Rule Lion::rule() const {
  check_range("Lion", "lr", lr);
  check_range("Lion", betas);
  check_range("Lion", "weight_decay", weight_decay);
  Rule rule{"lion", lr, {{"exp_avg"}}};
  rule.update = [p = *this](const UpdateTerms& terms) -> std::vector<Scalar> {
    const Scalar direction = moved(terms.gradient, terms.states[0], 1 - p.betas.first);
    const Scalar sign = scalar::less(0.0F, direction) - scalar::less(direction, 0.0F);
    return {shrunk(terms, p.weight_decay) - terms.lr * sign, moved(terms.states[0], terms.gradient, p.betas.second)};
  };
  return rule;
}

}  // namespace concord::optim
