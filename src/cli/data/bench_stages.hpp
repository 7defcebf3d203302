// The stages of reading samples, measured. Used by `concord data bench`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "concord/cli/data/stored_parts.hpp"
#include "concord/concord.hpp"

namespace concord::cli {

/// What a stage did in the seconds that it was measured.
struct StageRate {
  std::string stage;  // "read", "decode", "sample", "loader"
  int threads = 1;
  std::int64_t samples = 0;
  double seconds = 0;
  std::uint64_t bytes = 0;  // as stored; of the loader, of its batches
  std::int64_t bad = 0;     // left out
  [[nodiscard]] double samples_per_second() const;
  [[nodiscard]] double megabytes_per_second() const;  // 10^6
};

struct BenchHow {
  double seconds = 5;  // for each stage
  std::int64_t batch = 64;
  std::uint64_t seed = 1;
};

/// Reads the stored bytes of random samples, and nothing else.
[[nodiscard]] StageRate rate_of_reading(const data::Records& records, int threads, const BenchHow& how);
/// Decodes whole images that lie in memory already, by one thread.
[[nodiscard]] StageRate rate_of_decoding(const data::Records& records, const BenchHow& how);
/// Samples::read of random samples, by one thread.
[[nodiscard]] StageRate rate_of_samples(const Samples& samples, const BenchHow& how);
/// A Loader over random samples; bad ones are skipped.
[[nodiscard]] StageRate rate_of_loader(const SharedSamples& samples, int threads, const BenchHow& how);

/// 1, 2, 4 … and `most`.
[[nodiscard]] std::vector<int> thread_counts(int most);

/// What keeps the loader from being faster, in words; `rates` are those of all stages.
[[nodiscard]] std::string limit_of(const std::vector<StageRate>& rates, int processors);

}  // namespace concord::cli
