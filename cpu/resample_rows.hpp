// The loops of resampling over one row. Used by resample.
#pragma once

#include <cstdint>

namespace concord::cpu {

/// dst = Σ weight[t]·src[place[t]·n + …] over `taps` rows of `n` values.
void resample_row(const float* src, std::int64_t n, const std::int32_t* place, const float* weight, std::int64_t taps,
                  float* dst);
/// dst[j] = Σ weight[t]·src[place[t]] over t in [begin[j], begin[j+1]), for j in [0, n).
void resample_columns(const float* src, const std::int32_t* begin, const std::int32_t* place, const float* weight,
                      std::int64_t n, float* dst);

}  // namespace concord::cpu
