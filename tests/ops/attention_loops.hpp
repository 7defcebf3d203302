// Attention in plain loops, in double precision, and cases made of them: what the tests of attention share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "concord/ops/attention.hpp"
#include "ops/op_test.hpp"

namespace concord::test {

using ops::Causal;

struct Sizes {
  std::int64_t batch, heads, key_heads, queries, keys, width;
};

/// A case: what hides keys comes as whole numbers, which have no gradient.
struct AttentionSetting {
  std::string name;
  Sizes sizes;
  Causal causal = Causal::none;
  std::vector<double> lengths = {};
  std::optional<Shape> mask = {};
  bool hide_row = false;  // the first row of the mask hides every key
  double deviation = 1;   // of q and k
  bool logsumexp = true;  // check it, and the gradient through it; −∞ has no differences
  bool tokens_first = false;  // transposed on the device to (B, T, H, D) and back
  bool analytic = false;      // gradients by their formulas, where differences take too long
};

/// Whole numbers −4 … 4 become halves, −1000 becomes −∞.
[[nodiscard]] Value mask_of(Value numbers);
/// dst and, where the setting wants it, the logsumexp, of q, k, v and the setting's mask and lengths.
[[nodiscard]] std::vector<Array> forward(const AttentionSetting& setting, const std::vector<Array>& x);
[[nodiscard]] Case case_of(const AttentionSetting& setting);

}  // namespace concord::test
