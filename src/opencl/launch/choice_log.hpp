// ChoiceLog: logs, at level debug, a choice among implementations: the chosen one, and the reason against each other
// one. Used by gemm/gemm.cpp and conv/conv.cpp.
#pragma once

#include <iterator>
#include <string>
#include <string_view>

namespace concord::opencl {

/// "a card: 64 x 1000 x 784 matrix multiplication in fp32 by "tiled"; not by "mma": a size is too small; …".
class ChoiceLog {
 public:
  /// Writes nothing when `is_wanted` is false or the log level is too high.
  explicit ChoiceLog(bool is_wanted = true);
  [[nodiscard]] bool is_heard() const { return is_heard_; }
  void refused(std::string_view name, std::string_view why);
  /// `seconds` is the expected time; infinite where the implementation is not worthwhile.
  void slower(std::string_view name, double seconds);
  void write(std::string_view device, std::string_view problem, std::string_view chosen) const;

 private:
  bool is_heard_;
  std::string text_;
};

/// The names of a list of implementations, for messages: "panel, scaled, … and reference".
template <class Implementations>
[[nodiscard]] std::string names_of(const Implementations& list) {
  std::string names;
  for (auto at = list.begin(); at != list.end(); ++at) {
    if (at != list.begin()) names += std::next(at) == list.end() ? " and " : ", ";
    names += (*at)->name;
  }
  return names;
}

}  // namespace concord::opencl
