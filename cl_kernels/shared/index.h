// Index arithmetic of the kernels that walk over strided operands: 32-bit indices, or 64-bit ones with WIDE_INDEX.
#ifndef CONCORD_INDEX_H
#define CONCORD_INDEX_H

#ifdef WIDE_INDEX
typedef ulong index_t;
#else
typedef uint index_t;
#endif

// n / d. For 32-bit indices without a division (Granlund and Montgomery, "Division by Invariant Integers using
// Multiplication", 1994): `multiplier` and `shift` come from the host; n < 2^31.
static inline index_t index_divide(index_t n, index_t d, uint multiplier, uint shift) {
#ifdef WIDE_INDEX
  return n / d;
#else
  return (mul_hi(n, multiplier) + n) >> shift;
#endif
}

#endif
