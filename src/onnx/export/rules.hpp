// The rules of each operator family. Internal to the export.
#pragma once

#include "concord/onnx/export/exporter.hpp"

namespace concord::onnx {

void add_pointwise_rules(Rules& rules);
void add_conv_rules(Rules& rules);
void add_pool_rules(Rules& rules);
void add_copy_rules(Rules& rules);
void add_matmul_rules(Rules& rules);
void add_norm_rules(Rules& rules);
void add_softmax_rules(Rules& rules);
void add_reduce_rules(Rules& rules);
void add_gather_rules(Rules& rules);
void add_resample_rules(Rules& rules);
void add_attention_rules(Rules& rules);
void add_recurrent_rules(Rules& rules);

/// Convolutions, with a bias (C) if its name is given; they return the name of the result.
[[nodiscard]] std::string write_conv(NodeExport& x, const Node& node, const std::string& bias);
[[nodiscard]] std::string write_conv_transpose(NodeExport& x, const Node& node, const std::string& bias);

/// Writes a sum with a bias, or a scale and a shift, together with the operator before it: Conv, Gemm,
/// BatchNormalization and LayerNormalization have these as inputs. Returns false if `x` is another formula.
[[nodiscard]] bool write_joined(NodeExport& x);

}  // namespace concord::onnx
