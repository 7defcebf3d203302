// Tuning at first use: before a program is compiled, the device may measure its kernels for products that no table knows.
// Used by compile.
#pragma once

#include "concord/compile/lowered.hpp"

namespace concord {

struct CompileOptions;

/// The seconds that a compile may spend on tuning: those of the options, else $CONCORD_TUNE_SECONDS. Throws
/// ArgumentError for what is no such number.
[[nodiscard]] double tuning_seconds(const CompileOptions& options);

/// Measures the products of `program`, which may lack kernels, that the device knows no choice for, the most expensive
/// first, for about so many seconds, and stores what it finds; a table that cannot be written is reported in the log.
void tune_at_first_use(const Lowered& program, Device& device, Precision precision, double seconds);

}  // namespace concord
