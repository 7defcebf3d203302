// Tuning of programs: their products, and measuring those that no table knows before a program is compiled. Used by
// compile and `concord tune`.
#pragma once

#include <span>
#include <vector>

#include "concord/compile/lowered.hpp"
#include "concord/compile/program.hpp"
#include "concord/device/tuner.hpp"

namespace concord {

/// The products that `compile` would prepare kernels for; takes no memory of the device. Throws NotSupported where the
/// device has no choice of kernels.
[[nodiscard]] std::vector<TunableProduct> tunable_products(const Graph& graph, std::span<const Value> outputs,
                                                           Device& device, const CompileOptions& options);

/// The seconds that a compile may spend on tuning: those of the options, else $CONCORD_TUNE_SECONDS. Throws
/// ArgumentError for what is no such number.
[[nodiscard]] double tuning_seconds(const CompileOptions& options);

/// Measures the products of `program`, which has no kernels yet, that the device knows no choice for, the most
/// expensive first, for about so many seconds, and stores what it finds; a table that cannot be written is reported in
/// the log.
void tune_at_first_use(const Lowered& program, Device& device, Precision precision, double seconds);

}  // namespace concord
