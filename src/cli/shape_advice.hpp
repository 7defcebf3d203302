// What helps where a network does not take samples of a shape. The data of a command uses it.
#pragma once

#include <string>

#include "concord/concord.hpp"

namespace concord::cli {

/// Sentences behind a message, with a blank before them: networks that take such samples, and how images get other
/// channels. Empty where none of it helps.
[[nodiscard]] std::string shape_advice(const models::Model& model, const Shape& sample);

}  // namespace concord::cli
