// A part of a graph as a program: a stage of a pipeline computes one, and receives and sends what lies at its borders.
// Internal to the library.
#pragma once

#include "concord/compile/lowered.hpp"
#include "concord/compile/memory_need.hpp"

namespace concord {

/// Compiles what the section needs. Values that it is given are inputs by their names (Program::write). If it pauses
/// (Section::before_pause), a run is run_before_pause and run_after_pause, and runs of several twins may overlap
/// (Program::twin); then it throws NotSupported for a variable that is assigned before the pause and read behind it.
/// CompileOptions::part has no meaning. Throws as compile().
[[nodiscard]] Program compile_section(const Graph& graph, const Section& section, const VariablesPtr& variables,
                                      const CompileOptions& options = {});

/// The variables that it reads and assigns.
[[nodiscard]] std::vector<VariablePtr> variables_of(const Graph& graph, const Section& section);

}  // namespace concord
