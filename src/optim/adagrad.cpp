// Rules that divide by the size of past gradients alone: RMSprop, Adagrad, Adadelta.
#include "concord/optim/formulas.hpp"

namespace concord::optim {

using scalar::sqrt;

Rule RMSprop::rule() const {
  check_range("RMSprop", "lr", lr);
  check_range("RMSprop", "alpha", alpha);
  check_range("RMSprop", "eps", eps);
  check_range("RMSprop", "momentum", momentum);
  check_range("RMSprop", "weight_decay", weight_decay);
  Rule rule{"rmsprop", lr, {{"square_avg"}}};
  if (centered) rule.states.push_back({"grad_avg"});
  if (momentum > 0) rule.states.push_back({"momentum_buffer"});
  rule.update = [p = *this](const UpdateTerms& terms) {
    const Scalar gradient = decayed(terms, p.weight_decay);
    const Scalar square = moved_square(terms.states[0], gradient, p.alpha);
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
  check_range("Adagrad", "lr", lr);
  check_range("Adagrad", "lr_decay", lr_decay);
  check_range("Adagrad", "eps", eps);
  check_range("Adagrad", "initial_accumulator", initial_accumulator);
  check_range("Adagrad", "weight_decay", weight_decay);
  Rule rule{"adagrad", lr, {{"sum", static_cast<float>(initial_accumulator)}}};
  rule.shared = [p = *this](const SharedTerms& terms) -> std::vector<Scalar> {
    return {terms.lr / (1.0F + (terms.step - 1.0F) * number(p.lr_decay))};
  };
  rule.update = [p = *this](const UpdateTerms& terms) -> std::vector<Scalar> {
    const Scalar gradient = decayed(terms, p.weight_decay);
    const Scalar total = terms.states[0] + gradient * gradient;
    return {terms.weight - terms.shared[0] * gradient / (sqrt(total) + number(p.eps)), total};
  };
  return rule;
}

Rule Adadelta::rule() const {
  check_range("Adadelta", "lr", lr);
  check_range("Adadelta", "rho", rho, std::nextafter(1.0, 2.0));
  check_range("Adadelta", "eps", eps);
  check_range("Adadelta", "weight_decay", weight_decay);
  Rule rule{"adadelta", lr, {{"square_avg"}, {"acc_delta"}}};
  rule.update = [p = *this](const UpdateTerms& terms) -> std::vector<Scalar> {
    const Scalar gradient = decayed(terms, p.weight_decay);
    const Scalar square = moved_square(terms.states[0], gradient, p.rho);
    const Scalar delta = sqrt(terms.states[1] + number(p.eps)) / sqrt(square + number(p.eps)) * gradient;
    return {terms.weight - terms.lr * delta, square, moved_square(terms.states[1], delta, p.rho)};
  };
  return rule;
}

}  // namespace concord::optim
