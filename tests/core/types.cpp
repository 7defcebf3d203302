// Element types and precisions: names and sizes.
#include "concord/core/types.hpp"

#include "concord/core/error.hpp"
#include "concord_test.hpp"

namespace concord::test {

TEST_CASE("precisions are told by name", "[core]") {
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
    CHECK(precision_of(name_of(precision)) == precision);
  }
  CHECK_THROWS_AS(precision_of("fp8"), ArgumentError);
  CHECK(unit_of(Precision::bf16) == 0x1p-8);
}

}  // namespace concord::test
