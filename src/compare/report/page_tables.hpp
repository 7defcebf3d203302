// The tables of compare's page.
#pragma once

#include <string>

#include "concord/compare/compare.hpp"

namespace concord {

/// Rows operators, columns devices: the error as a share of its tolerance. First the worst of each kind of operator,
/// then every node.
[[nodiscard]] std::string heat_tables(const Comparison& comparison);

/// Rows operators, columns devices: time in a step, and the share of the roofline. Empty without CompareOptions::speed.
[[nodiscard]] std::string time_table(const Comparison& comparison);

}  // namespace concord
