// ChoiceLog: what the log says, at level debug, of a choice among implementations: which was taken, and why each other
// was not. Used by gemm/gemm.cpp and conv/conv.cpp.
#pragma once

#include <iterator>
#include <string>
#include <string_view>

namespace concord::opencl {

/// "a card: 64 x 1000 x 784 matrix multiplication in fp32 by "tiled"; not by "mma": a size is below 8; …".
class ChoiceLog {
 public:
  /// Without `is_wanted`, and where the log is not heard, nothing is written.
  explicit ChoiceLog(bool is_wanted = true);
  [[nodiscard]] bool is_heard() const { return is_heard_; }
  void refused(std::string_view name, std::string_view why);
  /// `seconds` are expected of it; infinite where it is not worth it.
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
