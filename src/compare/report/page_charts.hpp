// The charts of compare's page, each in two sizes of which the style sheet shows one.
#pragma once

#include <string>

#include "concord/compare/compare.hpp"

namespace concord {

/// "s0" … "s7": the colour of a device, by its place in the comparison.
[[nodiscard]] std::string device_style(std::size_t place);
/// The devices with their colours. Adds the perturbed runs if there are any and `perturbed` is set.
[[nodiscard]] std::string legend(const Comparison& comparison, bool perturbed);

[[nodiscard]] std::string loss_chart(const Comparison& comparison);
/// The differences of losses and of weights over the steps. Both are empty without CompareOptions::drift.
[[nodiscard]] std::string loss_drift_chart(const Comparison& comparison);
[[nodiscard]] std::string weight_drift_chart(const Comparison& comparison);
/// Operators by FLOPs a byte and FLOP/s below what the devices can do. Empty without CompareOptions::speed.
[[nodiscard]] std::string roofline_chart(const Comparison& comparison);

}  // namespace concord
