// The median. Used to report times, because a single interruption changes a mean.
#pragma once

#include <span>

namespace concord {

/// The middle one of the values in order; of an even number of them the mean of the middle two, of none 0.
[[nodiscard]] double median(std::span<const double> values);

}  // namespace concord
