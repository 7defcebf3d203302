// Random samples with targets for each kind of network in the zoo. --data random uses them.
#pragma once

#include <cstdint>

#include "concord/cli/trained.hpp"
#include "concord/concord.hpp"

namespace concord::cli {

/// The shape of the samples that weights were trained on: of rows of a table, of images or recordings as they were
/// prepared; else that of the published network.
[[nodiscard]] Shape trained_sample(const models::Model& model, const Trained& trained);

/// n samples of this shape for `model`. They depend only on the arguments. All
/// samples have the same distribution, so a part of them can be the test data. A network can learn: classes (at most
/// one for 8 samples), words that mostly follow each other in a fixed order, pixels whose class is their brightness,
/// and samples that are real if bright. Speech and games are noise.
[[nodiscard]] Dataset random_data(const models::Model& model, const Shape& sample, std::int64_t n, std::uint64_t seed);

/// The same for a network with such weights: with their classes, labels and targets.
[[nodiscard]] Dataset random_data(const models::Model& model, const Trained& trained, const Shape& sample,
                                  std::int64_t n, std::uint64_t seed);

}  // namespace concord::cli
