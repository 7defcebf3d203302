// Tuning of programs: finds their matrix multiplications, and measures those that no table contains before a program is
// compiled. Used by compile and `concord tune`.
#pragma once

#include <span>
#include <vector>

#include "concord/compile/lowered.hpp"
#include "concord/compile/program.hpp"
#include "concord/device/tuner.hpp"

namespace concord {

/// The matrix multiplications that `compile` would prepare kernels for. Allocates no device memory. Throws NotSupported
/// if the device has no choice of kernels.
[[nodiscard]] std::vector<TunableProduct> tunable_products(const Graph& graph, std::span<const Value> outputs,
                                                           Device& device, const CompileOptions& options);

/// The seconds that a compile may spend on tuning: from the options, else from $CONCORD_TUNE_SECONDS. Throws
/// ArgumentError if that is not a number of seconds.
[[nodiscard]] double tuning_seconds(const CompileOptions& options);

/// Measures the matrix multiplications of `program`, which has no kernels yet, for about `seconds`: those for which the
/// device knows no choice, the most expensive first. Stores the results. A table that cannot be written is reported in
/// the log.
void tune_at_first_use(const Lowered& program, Device& device, Precision precision, double seconds);

}  // namespace concord
