// Work that may end the process that does it: a driver's, say, that calls abort().
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace concord {

/// What became of a process that tried some work.
struct Trial {
  bool returned = true;    // the work came to its end, if by an exception
  std::string end;         // where it did not: "Aborted", "Segmentation fault", "exit code 3", "no answer for 60 s"
  std::string last_words;  // the last line that was written to standard error; empty where there is none
};

/// Does `work` in a copy of this process, which ends with it, and without its standard output. To be called where this
/// process has no other thread yet: the copy has none of them, and waits for ever for a lock that one of them holds.
/// Where no copy can be made the work counts as returned.
[[nodiscard]] Trial try_in_copy(const std::function<void()>& work, std::chrono::seconds patience);

}  // namespace concord
