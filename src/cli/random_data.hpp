// Random samples with targets for whatever a network of the zoo is trained for: what "--data random" means.
#pragma once

#include <cstdint>

#include "concord/concord.hpp"

namespace concord::cli {

/// n samples of this shape for `model`; a function of the arguments alone, and of the same kind for all n, so that a
/// part of them serves as test. To be learned are: classes (at most one for 8 samples), words that mostly follow each
/// other in a fixed order, pixels whose class is their brightness, samples that are real when bright. Speech and games
/// are noise.
[[nodiscard]] Dataset random_data(const models::Model& model, const Shape& sample, std::int64_t n, std::uint64_t seed);

}  // namespace concord::cli
