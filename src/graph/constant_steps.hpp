// Combines consecutive steps with constants in a formula into one step. Fusion applies this to the formulas that it
// composes, so that devices get short ones.
#pragma once

#include "concord/graph/expression.hpp"

namespace concord {

/// `formula` with these steps as one, wherever they stand in it:
///   x·a·b = x·(ab)          where ab is a normal number
///   x + a + b = x + (a+b)   where a and b have one sign; so for differences, numbers first or last
///   (x + a)·b = x·b + ab    where b is a positive power of two and ab a normal number: the same bits
///   -(x·a), (-x)·a = x·(-a), and x/b = x·(1/b) where b is a power of two: the same bits
/// What rounding may change: the first two round once where the steps round twice, and their number is rounded itself;
/// so a result is off by as many half ULPs of its largest term as before. Where a step on the way leaves the range of
/// normal numbers (x·a overflows, x·a·b does not) the result is as if it had not. Sums that cancel, as in x + a - a,
/// stay as they are: they are how formulas round.
[[nodiscard]] Scalar merge_constant_steps(const Scalar& formula);

}  // namespace concord
