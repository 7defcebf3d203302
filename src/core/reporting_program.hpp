// Another program, run to its end with this one's input and output, that reports to this one beside them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace concord {

struct EndedProgram {
  std::string report;  // all that it wrote to the channel
  std::string end;     // "exit code 3", "Aborted"; empty after exit code 0
};

/// Starts the program, a path, with these arguments and one more variable in its environment, which names the channel:
/// value_of(channel) is its value. With `output_to_errors` its standard output goes where errors go. Throws IoError
/// when it does not start.
[[nodiscard]] EndedProgram run_reporting(const std::string& program, std::vector<std::string> arguments,
                                         const std::string& variable,
                                         const std::function<std::string(int channel)>& value_of,
                                         bool output_to_errors);

/// Of the other side: writes all of it, as far as somebody reads it.
void report_to(int channel, std::string_view text);

}  // namespace concord
