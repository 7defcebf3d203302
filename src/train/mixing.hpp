// Mixup and CutMix: samples of a batch that are mixed with their neighbours on the device. Internal to the module.
#pragma once

#include <cstdint>

#include "concord/compile/variables.hpp"
#include "concord/graph/values.hpp"
#include "concord/train/objective.hpp"
#include "concord/train/options.hpp"
#include "concord/train/source.hpp"

namespace concord::train {

/// Throws ArgumentError for a parameter that is negative or not finite, and for features that cannot be mixed: other
/// than numbers, or for CutMix other than images [C, H, W].
void check_mixing(const Mixing& mixing, const Samples& samples);

/// A batch of which each sample is mixed with the next one; the first column of features is. Read the losses of the
/// outputs through `loss`.
struct MixedBatch {
  Values features;          // as the network sees them
  Values labels, partners;  // of the samples, and of what they are mixed with
  Value share;              // f32 [1]: of the samples in the loss
  [[nodiscard]] Value loss(const Objective& objective, const Values& outputs) const;
};
[[nodiscard]] MixedBatch mix(Graph& graph, const BatchValues& batch);

/// The shape of what is mixed in a sample, its first column of features; empty where there is none, which is an error
/// elsewhere.
[[nodiscard]] Shape mixed_sample(const Samples& samples);

/// Writes how batch `batch` of an epoch is mixed: its shares and the rectangle of CutMix, from Philox(seed,
/// "train.mix", epoch). `image` is the shape of a sample.
void write_mixing(Variables& variables, const Mixing& mixing, const Shape& image, std::uint64_t seed,
                  std::uint32_t epoch, std::int64_t batch);

}  // namespace concord::train
