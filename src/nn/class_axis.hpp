// Which dimension of a network's outputs are the classes: the one that the loss compares. For what counts hits.
#pragma once

#include <cstddef>
#include <optional>

#include "concord/graph/graph.hpp"

namespace concord::loss {

/// The label of the operator that picks each row's own score from rows of scores (R, C).
inline constexpr const char* kChosen = "chosen";

/// `loss` was traced of `outputs` and `labels`. Of the dimensions of `outputs` without which its shape is that of the
/// labels, the one over which the loss takes its cross entropy, nll or softmax, as far as it reaches it by reshapes,
/// transposes, slices and formulas of elements; else the only one there is. Empty where there is none or the choice is
/// open.
[[nodiscard]] std::optional<std::size_t> class_axis(Value outputs, const Shape& labels, Value loss);

}  // namespace concord::loss
