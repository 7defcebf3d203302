// Adam and its kin, in the order of PyTorch's operations so that results agree to rounding.
#include "concord/optim/formulas.hpp"
#include "concord/optim/norm.hpp"

namespace concord::optim {
namespace {

using scalar::sqrt;

/// Adam and AdamW differ in how weight decay enters.
Rule adam_rule(const char* name, const Adam& p, bool decoupled) {
  check_range(name, "lr", p.lr);
  check_range(name, p.betas);
  check_range(name, "eps", p.eps);
  check_range(name, "weight_decay", p.weight_decay);
  Rule rule{name, p.lr, {{"exp_avg"}, {"exp_avg_sq"}}};
  if (p.amsgrad) rule.states.push_back({"max_exp_avg_sq"});
  rule.shared = [p](const SharedTerms& terms) -> std::vector<Scalar> {
    return {terms.lr / bias_correction(p.betas.first, terms.step), sqrt(bias_correction(p.betas.second, terms.step))};
  };
  rule.update = [p, decoupled](const UpdateTerms& terms) {
    const Scalar& step_size = terms.shared[0];
    const Scalar& root_correction = terms.shared[1];
    const Scalar gradient = decoupled ? terms.gradient : decayed(terms, p.weight_decay);
    const Scalar weight = decoupled ? shrunk(terms, p.weight_decay) : terms.weight;
    const Scalar mean = moved(terms.states[0], gradient, p.betas.first);
    const Moment square = moved_square(terms.states[1], gradient, p.betas.second);
    std::vector<Scalar> results{weight, mean, square.state};
    Scalar root = square.root;
    if (p.amsgrad) {
      results.push_back(larger_moment(terms.states[2], square.state));
      root = root_of(results.back());
    }
    results[0] = weight - step_size * (mean / divisor(root / root_correction, p.eps));
    return results;
  };
  return rule;
}

/// What NAdam and RAdam have in common: weight decay of either kind.
struct Decayed {
  Scalar weight, gradient;
  Decayed(const UpdateTerms& terms, double weight_decay, bool decoupled)
      : weight(decoupled ? shrunk(terms, weight_decay) : terms.weight),
        gradient(decoupled ? terms.gradient : decayed(terms, weight_decay)) {}
};

/// RAdam's length of the moving average, ρ∞ − 2·step·βˢ/(1 − βˢ) with s = step. Both terms are large and their
/// difference small, so for small x = −s·log β the series of x/(eˣ − 1) is subtracted term by term.
Scalar average_length(double beta, const Scalar& step) {
  const double decay = -log_of(beta);
  const double limit = 2 / (1 - beta) - 1;
  const Scalar x = step * number(decay);
  const Scalar x2 = x * x;
  const Scalar series = x * (1.0F / 6 - x2 * (1.0F / 360 - x2 * (1.0F / 15120 - x2 * (1.0F / 604800))));
  const Scalar early = number(limit - 2 / decay) + step * (1.0F - series);
  const Scalar late = number(limit) - 2.0F * step / scalar::expm1(x);
  return scalar::select(scalar::less(x, 1.0F), early, late);
}

}  // namespace

Rule Adam::rule() const { return adam_rule("adam", *this, false); }

Rule AdamW::rule() const { return adam_rule("adamw", {lr, betas, eps, weight_decay, amsgrad}, true); }

Rule Adamax::rule() const {
  check_range("Adamax", "lr", lr);
  check_range("Adamax", betas);
  check_range("Adamax", "eps", eps);
  check_range("Adamax", "weight_decay", weight_decay);
  Rule rule{"adamax", lr, {{"exp_avg"}, {"exp_inf"}}};
  rule.shared = [p = *this](const SharedTerms& terms) -> std::vector<Scalar> {
    return {terms.lr / bias_correction(p.betas.first, terms.step)};
  };
  rule.update = [p = *this](const UpdateTerms& terms) -> std::vector<Scalar> {
    const Scalar gradient = decayed(terms, p.weight_decay);
    const Scalar mean = moved(terms.states[0], gradient, p.betas.first);
    const Scalar faded = terms.states[1] * number(p.betas.second);
    const Scalar largest = scalar::max(faded, divisor(scalar::abs(gradient), p.eps));
    return {terms.weight - terms.shared[0] * (mean / largest), mean, largest};
  };
  return rule;
}

Rule NAdam::rule() const {
  check_range("NAdam", "lr", lr);
  check_range("NAdam", betas);
  check_range("NAdam", "eps", eps);
  check_range("NAdam", "weight_decay", weight_decay);
  check_range("NAdam", "momentum_decay", momentum_decay);
  Rule rule{"nadam", lr, {{"exp_avg"}, {"exp_avg_sq"}}, {{"mu_product", 1}}};
  rule.shared = [p = *this](const SharedTerms& terms) -> std::vector<Scalar> {
    const auto momentum = [&](const Scalar& step) {
      const Scalar faded = scalar::exp(step * number(p.momentum_decay * std::log(0.96)));
      return number(p.betas.first) * (1.0F - 0.5F * faded);
    };
    const Scalar now = momentum(terms.step), next = momentum(terms.step + 1.0F);
    const Scalar product = terms.states[0] * now;
    return {terms.lr * (1.0F - now) / (1.0F - product), terms.lr * next / (1.0F - product * next),
            sqrt(bias_correction(p.betas.second, terms.step)), product};
  };
  rule.update = [p = *this](const UpdateTerms& terms) -> std::vector<Scalar> {
    const Decayed of(terms, p.weight_decay, p.decoupled_weight_decay);
    const Scalar mean = moved(terms.states[0], of.gradient, p.betas.first);
    const Moment square = moved_square(terms.states[1], of.gradient, p.betas.second);
    const Scalar size = divisor(square.root / terms.shared[2], p.eps);
    return {of.weight - terms.shared[0] * (of.gradient / size) - terms.shared[1] * (mean / size), mean, square.state};
  };
  return rule;
}

Rule RAdam::rule() const {
  check_range("RAdam", "lr", lr);
  check_range("RAdam", betas);
  check_range("RAdam", "eps", eps);
  check_range("RAdam", "weight_decay", weight_decay);
  Rule rule{"radam", lr, {{"exp_avg"}, {"exp_avg_sq"}}};
  rule.shared = [p = *this](const SharedTerms& terms) -> std::vector<Scalar> {
    const double limit = 2 / (1 - p.betas.second) - 1;
    const Scalar length = average_length(p.betas.second, terms.step);
    const Scalar rectifier = sqrt((length - 4.0F) * (length - 2.0F) * number(limit / ((limit - 4) * (limit - 2))) /
                                  length * bias_correction(p.betas.second, terms.step));
    const Scalar step_size = terms.lr / bias_correction(p.betas.first, terms.step);
    return {step_size, scalar::select(scalar::less(5.0F, length), rectifier, 0.0F)};
  };
  rule.update = [p = *this](const UpdateTerms& terms) -> std::vector<Scalar> {
    const Decayed of(terms, p.weight_decay, p.decoupled_weight_decay);
    const Scalar mean = moved(terms.states[0], of.gradient, p.betas.first);
    const Moment square = moved_square(terms.states[1], of.gradient, p.betas.second);
    const Scalar& rectifier = terms.shared[1];
    const Scalar direction = scalar::select(rectifier, rectifier * (mean / divisor(square.root, p.eps)), mean);
    return {kept(of.weight - terms.shared[0] * direction), mean, square.state};
  };
  return rule;
}

Rule Lamb::rule() const {
  check_range("Lamb", "lr", lr);
  check_range("Lamb", betas);
  check_range("Lamb", "eps", eps);
  check_range("Lamb", "weight_decay", weight_decay);
  CONCORD_CHECK(least_norm >= 0 && least_norm <= most_norm, ArgumentError,
                "Lamb: the bounds of the weights' norm are {} and {}", least_norm, most_norm);
  Rule rule{"lamb", lr, {{"exp_avg"}, {"exp_avg_sq"}}};
  rule.shared = [p = *this](const SharedTerms& terms) -> std::vector<Scalar> {
    return {bias_correction(p.betas.first, terms.step), sqrt(bias_correction(p.betas.second, terms.step))};
  };
  const auto mean = [p = *this](const UpdateTerms& terms) {
    return moved(terms.states[0], terms.gradient, p.betas.first);
  };
  const auto square = [p = *this](const UpdateTerms& terms) {
    return moved_square(terms.states[1], terms.gradient, p.betas.second);
  };
  const auto direction = [p = *this, mean, square](const UpdateTerms& terms) {
    const Scalar size = divisor(square(terms).root / terms.shared[1], p.eps);
    return mean(terms) / size / terms.shared[0] + number(p.weight_decay) * terms.weight;
  };
  rule.stage = [direction](const ParameterStep& step) -> Staged {
    return {{norm_of(step.weight), norm_of(step.elementwise("lamb_direction", {}, direction))}};
  };
  rule.update = [p = *this, mean, square, direction](const UpdateTerms& terms) -> std::vector<Scalar> {
    Scalar size = scalar::max(terms.staged[0], number(p.least_norm));
    if (std::isfinite(p.most_norm)) size = scalar::min(size, number(p.most_norm));
    const Scalar usable = scalar::less(0.0F, size) * scalar::less(0.0F, terms.staged[1]);
    const Scalar trust = scalar::select(usable, size / terms.staged[1], 1.0F);
    return {kept(terms.weight - terms.lr * (trust * direction(terms))), mean(terms), square(terms).state};
  };
  return rule;
}

}  // namespace concord::optim
