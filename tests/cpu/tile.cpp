// Tile loops: every scalar function runs on vectors.
#include "../../cpu/tile.hpp"

#include <algorithm>
#include <chrono>

#include "concord_test.hpp"
#include "shared/formulas.h"

namespace concord::test {

// Timed, so in optimised builds alone, and where loops have versions for processors with AVX2: without it floor and
// power are calls.
#if defined(NDEBUG) && defined(CONCORD_HAS_CLONES)
namespace {

constexpr std::int64_t kElements = 1024;

struct TimedFunction {
  const char* name;
  ScalarFunction function;
  void (*one_by_one)(const float* a, const float* b, float* dst);
};

const TimedFunction kFunctions[] = {
#define CONCORD_ROW(name, ...)                                                 \
  {#name, ScalarFunction::name, [](const float* a, const float*, float* dst) { \
     float (*volatile function)(float) = concord_##name;                       \
     for (std::int64_t i = 0; i < kElements; ++i) dst[i] = function(a[i]);     \
   }},
    CONCORD_UNARY_FUNCTIONS(CONCORD_ROW)
#undef CONCORD_ROW
#define CONCORD_ROW(name, ...)                                                   \
  {#name, ScalarFunction::name, [](const float* a, const float* b, float* dst) { \
     float (*volatile function)(float, float) = concord_##name;                  \
     for (std::int64_t i = 0; i < kElements; ++i) dst[i] = function(a[i], b[i]); \
   }},
        CONCORD_BINARY_FUNCTIONS(CONCORD_ROW)
#undef CONCORD_ROW
};

template <class Work>
double seconds_of(Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  for (int repeat = 0; repeat < 10; ++repeat) work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

// Eight lanes take at most a quarter of the time of calls, a loop that the compiler has not turned into vectors three
// quarters and more.
TEST_CASE("the loop over each scalar function is a vector loop", "[cpu]") {
  if (!__builtin_cpu_supports("avx2")) return;
  std::vector<float> a(kElements), b(kElements), dst(kElements);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = 0.1F + 0.8F * static_cast<float>(i) / static_cast<float>(kElements);
    b[i] = 2.0F - a[i];
  }
  const cpu::TileOperand arguments[3] = {{a.data(), false}, {b.data(), false}, {}};
  for (const TimedFunction& timed : kFunctions) {
    double loop = 1e9, calls = 1e9;
    for (int round = 0; round < 50 && (round < 5 || loop > 0.6 * calls); ++round) {  // other programs disturb some
      loop = std::min(loop, seconds_of([&] { cpu::tile_apply(timed.function, arguments, dst.data(), kElements); }));
      calls = std::min(calls, seconds_of([&] { timed.one_by_one(a.data(), b.data(), dst.data()); }));
    }
    INFO(timed.name << ": " << loop * 1e5 << " us, " << calls * 1e5 << " us by calls");
    CHECK(loop <= 0.6 * calls);
  }
}
#endif

}  // namespace concord::test
