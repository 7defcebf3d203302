// Random samples with targets for whatever a network of the zoo is trained for: what "--data random" means.
#pragma once

#include <cstdint>

#include "concord/concord.hpp"

namespace concord::cli {

/// n samples of this shape for `model`; a function of the arguments alone. A classifier can learn them, other networks
/// get noise.
[[nodiscard]] Dataset random_data(const models::Model& model, const Shape& sample, std::int64_t n, std::uint64_t seed);

}  // namespace concord::cli
