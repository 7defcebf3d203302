// What to compute instead of an operator whose gradient stops short: for messages of `gradient`.
#pragma once

#include <string>
#include <string_view>

namespace concord::ops {

/// A composition of operators that has gradients of any order, for the operator of this name whose gradient rule throws
/// NotSupported: for "attention_backward_query", how to write an attention.
[[nodiscard]] std::string instead_of(std::string_view op);

}  // namespace concord::ops
