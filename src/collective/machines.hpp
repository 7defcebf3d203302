// Machines: those of one training, and what each enters about itself where they meet (Rendezvous). Internal to the
// library.
#pragma once

#include <cstdint>
#include <string>

namespace concord::collective {

/// The machines of one training.
struct Machines {
  int count = 1;
  std::string host;  // the machine that serves the store
  std::uint16_t port = 0;
  int fewest = 0;  // with so many the training starts at the deadline; 0: only with `count`

  /// "HOST:PORT".
  [[nodiscard]] std::string place() const;
  /// As --nodes has it: "2:4".
  [[nodiscard]] std::string number() const;
};

/// Reads "HOST:PORT". Throws ArgumentError.
[[nodiscard]] Machines machines_at(const std::string& place, int count, int fewest = 0);

/// What a launcher enters about its machine.
struct Machine {
  std::string version, host, address;
  std::string machines;  // Machines::number
  std::string id;        // of this launcher: one that is started again has another
  int ranks = 0;         // that it brings
  int least = 0;         // --min-ranks
  int place = 0;         // in the order of arrival
  bool serves_store = false;

  [[nodiscard]] std::string text() const;
  /// Throws ArgumentError if it is no text of a launcher.
  [[nodiscard]] static Machine of(const std::string& text, int place);
  /// A sentence about what differs although it must be the same on all machines; empty if nothing does.
  [[nodiscard]] std::string mismatch(const Machine& other) const;
};

}  // namespace concord::collective
