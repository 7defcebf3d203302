// --ask-tell: an outside optimizer gives settings on standard input and gets results on standard output.
#pragma once

#include <iosfwd>
#include <vector>

#include "concord/cli/search/trial_training.hpp"

namespace concord::cli {

/// Reads a request from each line of the descriptor `in`, {"ask": ID, "settings": {"lr": 0.01, "optimizer": "adam"}},
/// trains a network with these settings for `epochs`, and writes a line with its result: {"tell": ID, "value": 0.31,
/// …}. The ID is any JSON value; "value" is what `monitor` names, and a trial that failed has "failed" with its reason
/// instead. With several devices that many requests are trained at a time, and results come in the order of their ends.
/// `best`: the score that a trial must beat for its weights to be kept, if there is one. Returns at the end of the
/// input, or after a signal. Throws FormatError for a line that is no request.
void ask_tell(int in, std::ostream& out, TrialTraining& training, const std::vector<DevicePtr>& devices,
              std::int64_t epochs, SearchMonitor monitor, std::optional<double> best);

}  // namespace concord::cli
