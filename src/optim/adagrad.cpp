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
    const Moment square = moved_square(terms.states[0], gradient, p.alpha);
    std::vector<Scalar> results{terms.weight, square.state};
    Scalar deviation = square.root;
    if (p.centered) {
      const Scalar mean = moved(terms.states[1], gradient, p.alpha);
      // √(square − mean²). A difference below the rounding of the squares says nothing: it counts as that rounding.
      constexpr float kRounding = 0x1p-23F;
      const Scalar part = mean / scalar::max(square.root, std::numeric_limits<float>::min());
      deviation = square.root * sqrt(scalar::max((1.0F - part) * (1.0F + part), kRounding));
      results.push_back(mean);
    }
    Scalar direction = gradient / divisor(deviation, p.eps);
    if (p.momentum > 0) {
      direction = kept(number(p.momentum) * terms.states.back() + direction);
      results.push_back(direction);
    }
    results[0] = kept(terms.weight - terms.lr * direction);
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
    const Moment total = stored_moment(terms.states[0], terms.states[0] + gradient * gradient,
                                       hypotenuse(root_of(terms.states[0]), scalar::abs(gradient)));
    return {terms.weight - terms.shared[0] * (gradient / divisor(total.root, p.eps)), total.state};
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
    const Moment square = moved_square(terms.states[0], gradient, p.rho);
    // √(a + eps) of the moment a with this root.
    const auto size = [root = number(std::sqrt(p.eps))](const Scalar& of) { return hypotenuse(of, root); };
    const Scalar delta = kept(size(root_of(terms.states[1])) * (gradient / divisor(size(square.root), 0)));
    return {kept(terms.weight - terms.lr * delta), square.state, moved_square(terms.states[1], delta, p.rho).state};
  };
  return rule;
}

}  // namespace concord::optim
