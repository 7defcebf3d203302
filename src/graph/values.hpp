// Values: the inputs or outputs of a network that has several: an ordered list of values with names.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "concord/core/export.hpp"
#include "concord/graph/graph.hpp"

namespace CONCORD_PUBLIC concord {

/// A value and its name in a list. A value that is known by its position has an empty name.
struct NamedValue {
  std::string name;
  Value value;
};

/// An ordered list of values, such as `{{"image", x}, {"table", t}}` or, by position, `{x, t}`. Names are unique.
class Values {
 public:
  Values() = default;
  Values(Value value) : Values{NamedValue{{}, value}} {}
  /// Throws ArgumentError if a name occurs twice.
  Values(std::initializer_list<NamedValue> values);
  Values(std::initializer_list<Value> values);

  /// Throws ArgumentError if the name is taken.
  void add(std::string name, Value value);
  /// Returns the value of this name. Throws ArgumentError that lists the names if there is none.
  [[nodiscard]] Value operator[](std::string_view name) const;
  /// Returns the value at this position. Throws ArgumentError if there are fewer.
  [[nodiscard]] Value operator[](std::size_t position) const;
  /// Returns the value of this name, or an empty Value. For inputs that may be left out.
  [[nodiscard]] Value find(std::string_view name) const;
  /// Returns the value of a list of one. Throws ArgumentError that lists the names otherwise.
  [[nodiscard]] Value only() const;
  /// Returns the list with a name for each value: values without a name get that of `names` at their position. Throws
  /// ArgumentError if there are more of them than names, or if a name is not among `names`.
  [[nodiscard]] Values named(const std::vector<std::string>& names) const;

  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] bool empty() const { return values_.empty(); }
  [[nodiscard]] auto begin() const { return values_.begin(); }
  [[nodiscard]] auto end() const { return values_.end(); }
  /// "image, table"; a value without a name is its position.
  [[nodiscard]] std::string names() const;

 private:
  std::vector<NamedValue> values_;
};

}  // namespace concord
