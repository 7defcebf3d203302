// Adafactor: the second moment of a matrix as the product of its row and column means.
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/optim/formulas.hpp"
#include "concord/optim/norm.hpp"

namespace concord::optim {
namespace {

using Estimate = std::function<Scalar(const UpdateTerms&)>;

Shape with_size_one(const Shape& shape, std::size_t axis) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[axis] = 1;
  return Shape(std::move(dims));
}

/// The state moved towards the mean of the squares over one axis by the step's fraction.
Value moved_mean(const ParameterStep& step, std::size_t state, std::int64_t axis) {
  const Value squares = mean(square(step.gradient), {axis}, true);
  return pointwise("adafactor_mean", {step.states[state], squares, step.shared[0]},
                   scalar::input(0) + scalar::input(2) * (scalar::input(1) - scalar::input(0)));
}

/// Adds to `rule` the update with this estimate of the second moment, whose root mean square is held below d, in parts
/// of the weights' own root mean square. `staged` gives what the estimate reads.
void add_update(Rule& rule, const Adafactor& p, std::size_t elements, const Estimate& estimate,
                std::function<Staged(const ParameterStep&)> staged, bool keeps_variance) {
  const double root = std::sqrt(static_cast<double>(elements));
  const auto direction = [p, estimate](const UpdateTerms& terms) {
    return terms.gradient * scalar::rsqrt(scalar::max(estimate(terms), number(p.eps1 * p.eps1)));
  };
  rule.stage = [direction, staged = std::move(staged)](const ParameterStep& step) {
    Staged result = staged(step);
    const Value size = norm_of(step.elementwise("adafactor_direction", result.values, direction));
    result.values.push_back(size);
    result.values.push_back(norm_of(step.weight));
    return result;
  };
  rule.update = [=](const UpdateTerms& terms) -> std::vector<Scalar> {
    const Scalar size = terms.staged[terms.staged.size() - 2] / number(root * p.d);
    const Scalar weight_size = terms.staged.back() / number(root);
    const Scalar rate = scalar::max(weight_size, number(p.eps2)) * terms.shared[1];
    std::vector<Scalar> results{shrunk(terms, p.weight_decay) - rate / scalar::max(size, 1.0F) * direction(terms)};
    if (keeps_variance) results.push_back(estimate(terms));
    return results;
  };
}

Rule vector_rule(const Adafactor& p, const Shape& shape) {
  Rule rule{"adafactor", p.lr, {{"variance"}}};
  const Estimate variance = [](const UpdateTerms& terms) {
    return terms.states[0] + terms.shared[0] * (terms.gradient * terms.gradient - terms.states[0]);
  };
  add_update(
      rule, p, static_cast<std::size_t>(shape.elements()), variance, [](const ParameterStep&) { return Staged{}; },
      true);
  return rule;
}

Rule matrix_rule(const Adafactor& p, const Shape& shape) {
  const std::size_t rank = shape.rank();
  Rule rule{"adafactor",
            p.lr,
            {{"row_var", 0, with_size_one(shape, rank - 1)}, {"col_var", 0, with_size_one(shape, rank - 2)}}};
  const auto factors = [](const ParameterStep& step) -> Staged {
    const Value rows = moved_mean(step, 0, -1), columns = moved_mean(step, 1, -2);
    return {{rows, columns, mean(rows, {-2}, true)}, {{0, rows}, {1, columns}}};
  };
  const Estimate product = [p](const UpdateTerms& terms) {
    return terms.staged[0] * terms.staged[1] / scalar::max(terms.staged[2], number(p.eps1));
  };
  add_update(rule, p, static_cast<std::size_t>(shape.elements()), product, factors, false);
  return rule;
}

}  // namespace

Rule Adafactor::rule() const {
  check_range("Adafactor", "lr", lr);
  check_range("Adafactor", "eps1", eps1);
  check_range("Adafactor", "eps2", eps2);
  check_range("Adafactor", "weight_decay", weight_decay);
  CONCORD_CHECK(beta2_decay <= 0 && std::isfinite(beta2_decay), ArgumentError,
                "Adafactor: beta2_decay is {}, must not be above 0", beta2_decay);
  CONCORD_CHECK(d >= 1 && std::isfinite(d), ArgumentError, "Adafactor: d is {}, must be 1 or more", d);
  Rule rule{"adafactor", lr};
  rule.shared = [p = *this](const SharedTerms& terms) -> std::vector<Scalar> {
    return {scalar::power(terms.step, number(p.beta2_decay)), scalar::min(terms.lr, scalar::rsqrt(terms.step))};
  };
  rule.for_shape = [p = *this](const Shape& shape) {
    return shape.rank() >= 2 ? matrix_rule(p, shape) : vector_rule(p, shape);
  };
  return rule;
}

}  // namespace concord::optim
