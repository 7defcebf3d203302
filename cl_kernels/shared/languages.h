// What headers need that compile as OpenCL C and as C++.
#ifndef CONCORD_LANGUAGES_H
#define CONCORD_LANGUAGES_H

#ifdef __OPENCL_VERSION__
#define CONCORD_STD(name) name
#define CONCORD_FLOAT_OF(bits) as_float(bits)
#define CONCORD_BITS_OF(number) as_uint(number)
#define CONCORD_HIGH_PRODUCT(a, b) mul_hi(a, b)
#define CONCORD_INLINE static inline
typedef uint concord_uint;
#else
#include <bit>
#include <cmath>
#include <cstdint>
#define CONCORD_STD(name) std::name
#define CONCORD_FLOAT_OF(bits) std::bit_cast<float>(bits)
#define CONCORD_BITS_OF(number) std::bit_cast<std::uint32_t>(number)
#define CONCORD_HIGH_PRODUCT(a, b) static_cast<std::uint32_t>((static_cast<std::uint64_t>(a) * (b)) >> 32)
using concord_uint = std::uint32_t;
// By force: a loop with a call is no vector loop, and compilers inline less where a function gets large.
#ifdef __GNUC__
#define CONCORD_INLINE [[gnu::always_inline]] static inline
#else
#define CONCORD_INLINE static inline
#endif
#endif

#endif
