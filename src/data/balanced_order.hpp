// Orders of samples in which all classes come equally often.
#pragma once

#include <cstdint>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/data/samples.hpp"

namespace CONCORD_PUBLIC concord {
namespace data {

/// `size()` rows for an epoch, in which the classes that have samples come equally often, up to one: samples of rare
/// classes come several times, some of frequent ones not at all. The samples of a class take turns, in random order.
/// Throws ArgumentError if Samples::class_of does not know the class of a sample.
[[nodiscard]] std::vector<std::int32_t> balanced_order(const Samples& samples, std::uint64_t seed,
                                                       std::uint32_t epoch = 0);

/// The number of samples of each class, by Samples::class_of. Throws ArgumentError as balanced_order.
[[nodiscard]] std::vector<std::int64_t> class_counts(const Samples& samples);

}  // namespace data
}  // namespace concord
