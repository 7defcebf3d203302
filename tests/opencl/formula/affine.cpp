// Which formulas are affine in their first input.
#include "concord/opencl/formula/affine.hpp"

#include "concord_test.hpp"

namespace concord::test {

TEST_CASE("sums, factors, divisors and choices by others are affine", "[opencl][formula]") {
  const Scalar x = scalar::input(0), y = scalar::input(1);
  const auto is_affine = [](const Scalar& formula) { return opencl::is_affine(Expression({formula}, 2)); };
  CHECK(is_affine(x));
  CHECK(is_affine(3.0F * x / (y * y) - scalar::sqrt(y)));
  CHECK(is_affine(scalar::select(scalar::less(0.0F, y), x, 0.0F)));
  CHECK(is_affine(y));
  CHECK(!is_affine(x * x));
  CHECK(!is_affine(y / x));
  CHECK(!is_affine(scalar::sqrt(x)));
  CHECK(!is_affine(scalar::select(scalar::less(0.0F, x), y, 0.0F)));
  CHECK(!opencl::is_affine(Expression({x, y}, 2)));
}

}  // namespace concord::test
