// The factor of normalised values, for deviations that were multiplied by a power of two, `unit`, so that their squares keep
// to fp32, and that power. Used by row and batch normalisation.
#ifndef CONCORD_NORM_RSTD_H
#define CONCORD_NORM_RSTD_H

// 1/√(variance + epsilon)/unit for the variance of the deviations times unit.
static inline float norm_rstd(float variance, float unit, float epsilon) {
  const float own = variance / unit / unit;
  return own < epsilon ? 1.0f / sqrt(own + epsilon) / unit : 1.0f / sqrt(variance + epsilon * unit * unit);
}

// 2^-e for a number in [2^e, 2^(e+1)), within [2^-126, most].
static inline float norm_unit(float largest, float most) {
  const int exponent = (int)(as_uint(largest) >> 23 & 0xff);
  return fmin(as_float((uint)clamp(254 - exponent, 1, 253) << 23), most);
}

#endif
