// What went wrong in a step that `minimize` did not apply: for loops of a user's own, and for the trainer.
#pragma once

#include <optional>
#include <string>

#include "concord/compile/program.hpp"
#include "concord/core/export.hpp"
#include "concord/optim/minimize.hpp"

namespace CONCORD_PUBLIC concord {
namespace optim {

/// A parameter whose gradient is not finite.
struct BadGradient {
  std::string parameter;
  std::int64_t elements = 0, not_finite = 0;
  /// "the gradient of 'head.weight' (3 of 12 elements)"
  [[nodiscard]] std::string str() const;
};

/// The first in the order of the backward pass. `graph` is one that `minimize` has worked on, `kept` compiled of it
/// with keep_all; its last run is what is looked at.
[[nodiscard]] std::optional<BadGradient> first_bad_gradient(const Graph& graph, const Program& kept);

/// What to do about a loss or a gradient that is not finite.
inline constexpr const char* kNonFiniteAdvice =
    "Where losses grow without bound, a smaller learning rate and clipping by norm help (optim::Clip, --clip-norm).";

/// For loops of one's own: throws NonFinite unless all runs of this program have been applied, counted since its
/// variables were made. Such a run leaves all variables as they were before, to the bit, and so do all later ones; it
/// is run again here, with the inputs that the program now has, to name the first operator and the first parameter
/// whose values are not finite. Waits for the device; to be called after a run, or now and then. `graph` is the
/// program's, `options` are those that it was compiled with, `name` is MinimizeOptions::name.
void require_applied(const Graph& graph, const Program& program, const CompileOptions& options = {},
                     const std::string& name = {});

}  // namespace optim
}  // namespace concord
