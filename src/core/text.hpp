// Text that is the same under every locale: numbers for a compiler or a file, and letters. A program may call setlocale
// or std::locale::global at any time, and drivers do; so whatever reads or writes such text goes through here, through
// fmt without {:a} and {:L}, or through std::to_chars and std::from_chars. scripts/check-rooms refuses the rest.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace concord {

/// The value exactly, as C and OpenCL C write it: "0x1.333334p-2". "inf", "nan", with their sign, are not for
/// compilers.
[[nodiscard]] std::string hexadecimal(float value);

/// The number that the whole text is, with a point: "0.5", "1e-3", "inf". Nothing where it is anything else. `base` may
/// be given of whole numbers.
template <class Number, class... Base>
[[nodiscard]] std::optional<Number> number_in_text(std::string_view text, Base... base) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, base...);
  if (text.empty() || error != std::errc{} || rest != end) return std::nullopt;
  return number;
}

// ASCII alone, whatever the locale takes for a letter: in Turkish `I` has another small letter.
[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
[[nodiscard]] constexpr bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
[[nodiscard]] constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
[[nodiscard]] constexpr char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
[[nodiscard]] std::string lower(std::string_view text);

/// The parts between separators: "a,b," is "a" and "b"; nothing of an empty text.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

/// While it lives the calling thread reads and writes numbers as in the locale "C", for libraries that ask the locale:
/// a reader of JSON takes the first byte of the locale's decimal point for all of it.
class NeutralNumbers {
 public:
  NeutralNumbers();
  NeutralNumbers(const NeutralNumbers&) = delete;
  NeutralNumbers& operator=(const NeutralNumbers&) = delete;
  ~NeutralNumbers();

 private:
  void* before_;
};

}  // namespace concord
