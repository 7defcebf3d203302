// The list of operator families.
#include "concord/onnx/export/rules.hpp"

namespace concord::onnx {

const Rules& all_rules() {
  static const Rules kRules = [] {
    Rules rules;
    add_pointwise_rules(rules);
    add_conv_rules(rules);
    add_pool_rules(rules);
    add_copy_rules(rules);
    add_matmul_rules(rules);
    add_norm_rules(rules);
    add_softmax_rules(rules);
    add_reduce_rules(rules);
    add_gather_rules(rules);
    add_resample_rules(rules);
    add_attention_rules(rules);
    add_recurrent_rules(rules);
    return rules;
  }();
  return kRules;
}

}  // namespace concord::onnx
