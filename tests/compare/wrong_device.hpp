// A device that computes as another does, but for one operator, of whose first result the first numbers are wrong. What
// the tests of compare hold against the right one.
#pragma once

#include <climits>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "concord/device/device.hpp"
#include "concord/graph/operator.hpp"

namespace concord::test {

/// Which operators are wrong.
using WrongOperator = std::function<bool(const Operator&)>;

/// What the first number becomes of which an operator makes `right`; nothing leaves it as it is.
using WrongNumber = std::function<std::optional<float>(float right)>;

/// `device` with the wrong operators' first number set to `value`, or to what `number` gives, named `name`. With
/// `kernels` only the first so many kernels that are prepared for them are wrong.
[[nodiscard]] DevicePtr wrong_device(DevicePtr device, std::string name, WrongOperator wrong, float value = 3);
[[nodiscard]] DevicePtr wrong_device(DevicePtr device, std::string name, WrongOperator wrong, WrongNumber number,
                                     int kernels = INT_MAX);
/// The same with several numbers; results have at least as many.
[[nodiscard]] DevicePtr wrong_device(DevicePtr device, std::string name, WrongOperator wrong,
                                     std::vector<float> values);

}  // namespace concord::test
