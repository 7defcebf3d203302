// concord plan --measure: how long exchanges between the ranks of this process's group take.
#pragma once

#include <string>

#include "concord/cli/launch.hpp"

namespace concord::cli {

/// Sums vectors of several sizes as a training sums gradients, and writes what `--link` reads (plan/link.hpp) to
/// `file`. `ranks` may start the processes of the group. Throws ArgumentError for a process that is no rank.
void measure_links(const std::string& file, const RanksOptions& ranks);

}  // namespace concord::cli
