// What a language model writes behind the samples of a text. Used by `concord predict --generate`.
#pragma once

#include <cstdint>
#include <vector>

#include "concord/concord.hpp"

namespace concord::cli {

/// For each row of `samples`, i32 (N, length), the `count` numbers that follow: each time the likeliest one, of equal
/// ones the lowest. The network sees the last `length` numbers.
[[nodiscard]] std::vector<std::vector<std::int32_t>> continuations(Trainer& trainer, const Tensor& samples,
                                                                   std::int64_t count, std::int64_t batch);

}  // namespace concord::cli
