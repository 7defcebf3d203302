// Adafactor: the second moment of a matrix as the product of its row and column means.
#include "concord/ops/pointwise.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/optim/formulas.hpp"
#include "concord/optim/norm.hpp"

namespace concord::optim {
namespace {

/// The root of an estimate of the second moment.
using Estimate = std::function<Scalar(const UpdateTerms&)>;

Shape with_size_one(const Shape& shape, std::size_t axis) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[axis] = 1;
  return Shape(std::move(dims));
}

/// The root of the mean of the squares over one axis.
Value root_mean_square(Value x, std::int64_t axis) {
  const double count = static_cast<double>(x.shape()[x.shape().index_of(axis)]);
  return norm(x, {axis}, true) / static_cast<float>(std::sqrt(count));
}

/// The state moved towards the mean of the squares over one axis by the step's fraction: what is stored, and its root.
std::vector<Value> moved_mean(const ParameterStep& step, std::size_t state, std::int64_t axis) {
  const Moment moved = moved_square(scalar::input(0), scalar::input(1), scalar::input(2));
  return pointwise("adafactor_mean", {step.states[state], root_mean_square(step.gradient, axis), step.shared[0]},
                   {moved.state, moved.root}, {DType::f32, DType::f32});
}

/// Adds to `rule` the update with this estimate of the second moment, whose root mean square is held below d, in parts
/// of the weights' own root mean square. `staged` gives what the estimate reads; `state` what is kept of it, if
/// anything.
void add_update(Rule& rule, const Adafactor& p, std::size_t elements, const Estimate& estimate,
                std::function<Staged(const ParameterStep&)> staged, const Estimate& state) {
  const double root = std::sqrt(static_cast<double>(elements));
  const auto direction = [p, estimate](const UpdateTerms& terms) {
    return terms.gradient / divisor(scalar::max(estimate(terms), number(p.eps1)), 0);
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
    const Scalar update = rate * (direction(terms) / scalar::max(size, 1.0F));
    std::vector<Scalar> results{kept(shrunk(terms, p.weight_decay) - update)};
    if (state) results.push_back(state(terms));
    return results;
  };
}

Rule vector_rule(const Adafactor& p, const Shape& shape) {
  Rule rule{"adafactor", p.lr, {{"variance"}}};
  const auto variance = [](const UpdateTerms& terms) {
    return moved_square(terms.states[0], terms.gradient, terms.shared[0]);
  };
  add_update(
      rule, p, static_cast<std::size_t>(shape.elements()),
      [=](const UpdateTerms& terms) { return variance(terms).root; }, [](const ParameterStep&) { return Staged{}; },
      [=](const UpdateTerms& terms) { return variance(terms).state; });
  return rule;
}

Rule matrix_rule(const Adafactor& p, const Shape& shape) {
  const std::size_t rank = shape.rank();
  Rule rule{"adafactor",
            p.lr,
            {{"row_var", 0, with_size_one(shape, rank - 1)}, {"col_var", 0, with_size_one(shape, rank - 2)}}};
  const auto factors = [](const ParameterStep& step) -> Staged {
    const std::vector<Value> rows = moved_mean(step, 0, -1), columns = moved_mean(step, 1, -2);
    return {{rows[1], columns[1], root_mean_square(rows[1], -2)}, {{0, rows[0]}, {1, columns[0]}}};
  };
  const Estimate product = [p](const UpdateTerms& terms) {
    const Scalar mean = divisor(scalar::max(terms.staged[2], number(std::sqrt(p.eps1))), 0);
    return kept(terms.staged[0] * (terms.staged[1] / mean));
  };
  add_update(rule, p, static_cast<std::size_t>(shape.elements()), product, factors, {});
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
