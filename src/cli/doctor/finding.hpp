// A finding of `concord doctor`: its weight and its trouble. docs/troubleshooting.md has an entry for each trouble.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace concord::cli {

enum class Trouble : std::uint8_t {
  none,
  no_backend,
  no_driver,
  driver_does_not_load,
  driver_ends_programs,
  driver_without_device,
  device_left_out,
  device_file_closed,
  device_file_without_device,
  no_device,
  device_does_not_open,
  little_memory,
  cache_not_kept,
  library_does_not_fit,
  wrong_kernel,
  denylist_not_kept,
  failed_check,
  library_warning
};

/// Of one trouble, for people.
struct TroubleWords {
  Trouble trouble;
  std::string_view title;  // of its entry in docs/troubleshooting.md
  std::string_view why;    // "you cannot train on opencl:0: " and this
};
/// Each trouble but `none`.
[[nodiscard]] std::span<const TroubleWords> all_troubles();
[[nodiscard]] const TroubleWords& words_of(Trouble trouble);

struct Finding {
  enum class Weight : std::uint8_t { fine, warning, obstacle };  // an obstacle keeps from training
  Weight weight = Weight::fine;
  Trouble trouble = Trouble::none;  // of what is not fine
  std::string text;                 // may have several lines
};
[[nodiscard]] Finding fine(std::string text);
[[nodiscard]] Finding warning(Trouble trouble, std::string text);
[[nodiscard]] Finding obstacle(Trouble trouble, std::string text);

/// "fine", "warning", "obstacle".
[[nodiscard]] std::string_view name_of(Finding::Weight weight);

}  // namespace concord::cli
