// Link: how long messages between two ranks take, as the LogGP model has it (Alexandrov et al., 1995), and the link
// that explains measured exchanges best. Internal to the library.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace concord::plan {

/// All times in seconds.
struct Link {
  double latency = 0;   // L: from the first byte's start to its arrival
  double overhead = 0;  // o: of the processor, for each message, at each of its ends
  double gap = 0;       // g: of the port, for each message, at each of its ends
  double per_byte = 0;  // G: of the port, for each byte: the reciprocal of the bandwidth
  /// The time in which a message occupies a port.
  [[nodiscard]] double occupancy(double bytes) const { return gap + bytes * per_byte; }
  friend bool operator==(const Link&, const Link&) = default;
};

/// "latency=20us,bandwidth=50GB/s", also with overhead and gap. Times end with s, ms, us or ns; bandwidths with GB/s,
/// MB/s, Gbit/s or Mbit/s, in powers of ten. Latency and bandwidth are required. Throws ArgumentError.
[[nodiscard]] Link parse_link(std::string_view text);

/// The time of one sum of `bytes` over `ranks`, of which all have it afterwards.
struct MeasuredExchange {
  double bytes = 0;
  int ranks = 2;
  double seconds = 0;
};

/// A CSV file with the header "bytes,ranks,seconds", to which further columns may follow; lines that begin with # do
/// not count. Errors begin with `subject`. Throws FormatError.
[[nodiscard]] std::vector<MeasuredExchange> read_exchanges(std::string_view text, std::string_view subject);

struct FittedLink {
  Link link;
  double sum_per_byte = 0;  // seconds to add a byte of one rank
  double error = 0;         // the largest deviation of an exchange, as a part of its measured time
};

/// The least squares of relative deviations. Exchanges of one number of ranks determine latency and bandwidth; of
/// several, also the gap and the time of sums. No result is below 0. Throws ArgumentError for fewer than two sizes.
[[nodiscard]] FittedLink fit_link(std::span<const MeasuredExchange> exchanges);

}  // namespace concord::plan
