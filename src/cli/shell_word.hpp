// A word of a command line, for lines that users copy into a shell.
#pragma once

#include <string>
#include <string_view>

namespace concord::cli {

/// `text` as one word of a POSIX shell: as it is where no character means something to the shell, else in single
/// quotes. What has control characters or is no UTF-8 becomes $'…' with escapes, which bash, zsh and ksh read.
[[nodiscard]] std::string shell_word(std::string_view text);

}  // namespace concord::cli
