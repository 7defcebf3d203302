// "512KiB" and the like.
#include "concord/cli/bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "concord/core/error.hpp"

namespace concord::cli {

std::size_t parse_bytes(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits{
      {{"", 1}, {"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}}};
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = std::string_view(text).substr(static_cast<std::size_t>(rest - text.data()));
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  const auto* const found = std::ranges::find(kUnits, unit, &std::pair<std::string_view, double>::first);
  const double bytes = found == kUnits.end() ? 0 : number * found->second;
  if (error != std::errc{} || !(bytes >= 1) || bytes >= 0x1p63) {
    throw ArgumentError(fmt::format("'{}' is not a number of bytes such as 1000000, 512KiB, 800MiB or 1.5GiB", text));
  }
  return static_cast<std::size_t>(bytes);
}

CLI::Validator number_of_bytes() {
  const auto refusal = [](const std::string& given) {
    try {
      static_cast<void>(parse_bytes(given));
      return std::string();
    } catch (const ArgumentError& error) {
      return std::string(error.what());
    }
  };
  return {refusal, "BYTES", {}};
}

}  // namespace concord::cli
