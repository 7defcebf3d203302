// The simulation of one exchange between the ranks of a training. Internal to the library.
//
// A message goes through three stages, each of which serves one message at a time in the order of arrival: the port of
// its sender, the port of its receiver, and the receiver's processor. The ranks of one machine have a port each for
// messages to each other, and share that of the machine for messages to others.
#pragma once

#include "concord/plan/link.hpp"

namespace concord::plan {

struct Cluster {
  int ranks = 1;
  int per_machine = 1;      // ranks of each machine; `ranks` is a multiple of it, or is less
  Link inside, between;     // between ranks of a machine, and between machines
  double sum_per_byte = 0;  // seconds in which a rank adds a byte of another to its own
};

enum class Algorithm {
  /// As collective::Group: each rank sends a part to each other rank, of whose parts it makes the sum, and then sends
  /// this sum to each other rank. Rank r sends to r + 1, r + 2, …, so that no two ranks send to the same one at once.
  direct,
  /// A part goes around the ring of ranks and is added to, and then around again. Fewer messages at a time, 2·(ranks −
  /// 1) one after another. Concord does not do this: the sums would not be in the order of the ranks. For comparison.
  ring
};

enum class Detail {
  /// One machine. All have the same work and begin at once, so messages that come from another machine arrive when
  /// those
  /// to another leave: this is exact.
  symmetric,
  all  // every machine; for checks
};

/// Seconds from the start of the exchange of `bytes` on all ranks until the last has all sums.
[[nodiscard]] double exchange_seconds(const Cluster& cluster, double bytes, Algorithm algorithm,
                                      Detail detail = Detail::symmetric);

}  // namespace concord::plan
