// Calls of oneDNN that a training makes fail.
#include <oneapi/dnnl/dnnl_types.h>

#include "concord_test.hpp"
#include "faults/series.hpp"

using namespace concord;
using namespace concord::test;

namespace {

const Answer kOutOfMemory{dnnl_out_of_memory, "out_of_memory", ErrorType::memory},
    kUnimplemented{dnnl_unimplemented, "unimplemented", ErrorType::unsupported},
    kRuntimeError{dnnl_runtime_error, "runtime_error", ErrorType::device};

constexpr std::size_t kFew = 8;

}  // namespace

TEST_CASE("oneDNN has no primitive or no memory for it", "[faults]") {
  CHECK(check_series(train, {"cpu", "CPU", faults::Kind::primitive, {kUnimplemented, kOutOfMemory}}, kFew) > 0);
}

TEST_CASE("oneDNN has no memory for operands", "[faults]") {
  CHECK(check_series(train, {"cpu", "CPU", faults::Kind::memory, {kOutOfMemory}}, kFew) > 0);
}

TEST_CASE("a primitive of oneDNN does not run", "[faults]") {
  CHECK(check_series(train, {"cpu", "CPU", faults::Kind::execution, {kOutOfMemory, kRuntimeError}}, kFew) > 0);
}
