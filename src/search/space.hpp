// Space: the parameters of a search and the values that each may take, parsed from a text such as
// "lr=log(1e-4,1e-1) batch={32,64} depth=[2,6]".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/export.hpp"

namespace CONCORD_PUBLIC concord {
namespace search {

/// The value of one parameter in a trial, as text: "0.01", "adam".
struct Setting {
  std::string name, value;
  friend bool operator==(const Setting&, const Setting&) = default;
};
/// One for each parameter, in the order of the space.
using Settings = std::vector<Setting>;

/// A parameter and its values. A number `unit` in [0, 1) selects a value.
struct Parameter {
  enum class Kind : std::uint8_t { choice, uniform, log };
  std::string name;
  Kind kind = Kind::choice;
  std::vector<std::string> choices = {};  // of Kind::choice; a single one is fixed
  double low = 0, high = 0;               // the ends of a range, which belong to it
  bool is_whole = false;                  // whether a range has only whole numbers
  std::int64_t points = 0;                // a range has only so many values, evenly spaced on its scale; 0: all
  std::vector<std::string> values = {};   // those of `points`, each once: rounding makes near ones equal

  /// The value at `unit`: each choice or whole number has an equal part of [0, 1), on a logarithmic scale a part by its
  /// size.
  [[nodiscard]] std::string at(double unit) const;
  /// The number of different values; none for a continuous range.
  [[nodiscard]] std::optional<std::int64_t> count() const;
  /// Value number i of count().
  [[nodiscard]] std::string value(std::int64_t i) const;
  /// Where a value lies between the first, 0, and the last, 1, on the scale of the parameter. Throws ArgumentError for
  /// a value that is none of the parameter.
  [[nodiscard]] double place(std::string_view value) const;
};

class Space {
 public:
  /// Parses parameters with spaces between them:
  /// - NAME=[a,b]: numbers from a to b, whole ones if both ends are written as whole numbers;
  /// - NAME=log(a,b): the same on a logarithmic scale;
  /// - NAME=[a,b,n] and NAME=log(a,b,n): only n evenly spaced values of the range;
  /// - NAME={x,y,z}: one of these; with | between them, values may contain commas: {crop=4,flip|none};
  /// - NAME=value: fixed.
  /// Throws ArgumentError, with the parameter and what is wrong with it.
  [[nodiscard]] static Space parse(std::string_view text);

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  /// The settings of a trial, drawn at random. They depend on nothing but the seed, the number of the trial and the
  /// names of the parameters.
  [[nodiscard]] Settings draw(std::uint64_t seed, std::int64_t trial) const;
  /// The number of combinations of all values. Throws ArgumentError if a range is continuous, or for more than a
  /// million combinations.
  [[nodiscard]] std::int64_t combinations() const;
  /// Combination i of these; the last parameter changes fastest.
  [[nodiscard]] Settings combination(std::int64_t i) const;

 private:
  std::vector<Parameter> parameters_;
};

}  // namespace search
}  // namespace concord
