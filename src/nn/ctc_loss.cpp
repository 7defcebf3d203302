// Ctc: normalise, the operator, the reduction.
#include "concord/nn/ctc_loss.hpp"

#include "concord/nn/reduced.hpp"
#include "concord/ops/ctc.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::loss {

Value Ctc::operator()(Value logits, Value targets, Value input_lengths, Value target_lengths) const {
  const Value losses = concord::ctc(log_softmax(logits), targets, input_lengths, target_lengths, blank, zero_infinity);
  if (reduction != Reduction::mean) return reduced(losses, reduction);
  const Scalar each = scalar::input(0) / scalar::max(scalar::input(1), 1.0F);
  return mean(pointwise("ctc_mean", {losses, target_lengths}, each));
}

}  // namespace concord::loss
