// The times of operators as `concord profile` and `bench` print them.
#pragma once

#include <span>
#include <string>

#include "concord/compare/operator_times.hpp"

namespace concord::cli {

/// With a line for the sum; without a speed there is no roofline.
[[nodiscard]] std::string operator_table(std::span<const OperatorTime> times, Rows rows, const DeviceSpeed* speed);

}  // namespace concord::cli
