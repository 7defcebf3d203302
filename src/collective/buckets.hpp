// Buckets: vectors that the ranks of a training sum at once. Internal to the library.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace concord::collective {

/// Bytes that are summed at once; more only for a larger vector. What is complete at the end of the backward pass is
/// exchanged after it: the slower the exchange, the smaller.
[[nodiscard]] std::size_t bucket_bytes(bool is_one_machine);

/// The bucket of each of the vectors of these sizes, which are summed in this order: as many as fit into `most`. Where
/// they end what is summed (`is_end`), no computation goes on beside the last bucket: if it is more than half full, its
/// end is a bucket of its own.
[[nodiscard]] std::vector<std::size_t> buckets_of(std::span<const std::size_t> bytes, std::size_t most,
                                                  bool is_end = true);

}  // namespace concord::collective
