// The factor of normalised values, for deviations that were multiplied by a power of two, `unit`, so that their squares keep
// to fp32. Used by row and batch normalisation.
#ifndef CONCORD_NORM_RSTD_H
#define CONCORD_NORM_RSTD_H

// 1/√(variance + epsilon)/unit for the variance of the deviations times unit.
static inline float norm_rstd(float variance, float unit, float epsilon) {
  const float own = variance / unit / unit;
  return own < epsilon ? 1.0f / sqrt(own + epsilon) / unit : 1.0f / sqrt(variance + epsilon * unit * unit);
}

#endif
