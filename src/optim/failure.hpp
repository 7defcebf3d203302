// Explains why `minimize` did not apply a step, for training loops and for the trainer.
#pragma once

#include <optional>
#include <string>

#include "concord/compile/program.hpp"
#include "concord/core/export.hpp"
#include "concord/optim/minimize.hpp"

namespace CONCORD_PUBLIC concord {
namespace optim {

/// A parameter with a gradient that is NaN or infinite.
struct BadGradient {
  std::string parameter;
  std::int64_t elements = 0, not_finite = 0;
  /// "the gradient of 'head.weight' (3 of 12 elements)"
  [[nodiscard]] std::string str() const;
};

/// Returns the first bad gradient in the order of the backward pass. `graph` was given to `minimize`; `kept` is
/// compiled from it with Retain::all. Reads the results of the last run.
[[nodiscard]] std::optional<BadGradient> first_bad_gradient(const Graph& graph, const Program& kept);

/// Advice for a loss or a gradient that is not finite.
inline constexpr const char* kNonFiniteAdvice =
    "If losses grow without bound, use a smaller learning rate or clipping by norm (optim::Clip, --clip-norm).";

/// Throws NonFinite unless all runs of this program since its variables were made have been applied. For training
/// loops; call it after a run, or from time to time. It waits for the device.
/// A run that was not applied leaves all variables unchanged, bit for bit, and so do all later runs. This function runs
/// it again with the current inputs of the program, to name the first operator and the first parameter with values that
/// are not finite. `graph` is the graph of the program, `options` are its compile options, `name` is
/// MinimizeOptions::name.
void require_applied(const Graph& graph, const Program& program, const CompileOptions& options = {},
                     const std::string& name = {});

}  // namespace optim
}  // namespace concord
