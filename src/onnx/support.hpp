// What a file asks for that Concord lacks, found without running it. Internal to the room.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "concord/onnx/declaration.hpp"
#include "concord/onnx/wire.hpp"

namespace concord::onnx {

/// Everything that is not supported, in the order of the file. What stands in a branch of an If counts only if that
/// branch is taken.
[[nodiscard]] std::vector<Missing> missing_of(const Model& model);
/// The inputs without an initialiser that decide a shape, or how a node is computed.
[[nodiscard]] std::vector<std::string> shape_inputs_of(const Model& model, const std::set<std::string>& known);
/// The declared inputs without an initialiser that are not known.
[[nodiscard]] std::vector<Declaration> open_inputs(const GraphDef& graph, const std::set<std::string>& known);
[[nodiscard]] Declaration declaration_of(const ValueInfo& info);
/// Reads a file. Throws FormatError, also if it names no operator set though its version asks for that.
[[nodiscard]] Model read_complete_model(const std::filesystem::path& path);

}  // namespace concord::onnx
