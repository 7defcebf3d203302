// A loss as text, for the table and the page.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace concord {

/// With six decimals. A NaN has no sign.
[[nodiscard]] inline std::string loss_text(float loss) { return fmt::format("{:.6f}", std::isnan(loss) ? NAN : loss); }

}  // namespace concord
