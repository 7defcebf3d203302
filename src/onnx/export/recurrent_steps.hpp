// Recurrent layers step by step, for training: the operators of ONNX do not give the gates that the gradient needs.
// Internal to the export.
#pragma once

#include "concord/onnx/export/exporter.hpp"
#include "concord/ops/recurrent.hpp"

namespace concord::onnx {

/// All outputs of an LSTM or a GRU without lengths.
void write_steps(NodeExport& x, const ops::Recurrent& op, const ops::RecurrentSizes& sizes);
/// Of RecurrentBackward.
void write_steps_back(NodeExport& x);

}  // namespace concord::onnx
