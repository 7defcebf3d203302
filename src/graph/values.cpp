// Values: finding by name and position, with messages that say what there is.
#include "concord/graph/values.hpp"

#include <algorithm>
#include <utility>

#include "concord/core/check.hpp"

namespace concord {

Values::Values(std::initializer_list<NamedValue> values) {
  for (const auto& [name, value] : values) add(name, value);
}

Values::Values(std::initializer_list<Value> values) {
  for (const Value& value : values) add({}, value);
}

void Values::add(std::string name, Value value) {
  CONCORD_CHECK(name.empty() || !find(name), ArgumentError, "there are two values named '{}'", name);
  CONCORD_CHECK(value, ArgumentError, "the value '{}' is empty", name.empty() ? std::to_string(size()) : name);
  values_.push_back({std::move(name), value});
}

Value Values::operator[](std::string_view name) const {
  const Value found = find(name);
  CONCORD_CHECK(found, ArgumentError, "there is no value '{}' among {}", name, names());
  return found;
}

Value Values::operator[](std::size_t position) const {
  CONCORD_CHECK(position < size(), ArgumentError, "there is no value number {}: there are {}, {}", position, size(),
                names());
  return values_[position].value;
}

Value Values::find(std::string_view name) const {
  const auto found = std::ranges::find(values_, name, &NamedValue::name);
  return found == values_.end() || name.empty() ? Value() : found->value;
}

Value Values::only() const {
  CONCORD_CHECK(size() == 1, ArgumentError, "one value is needed, got {}: {}", size(), names());
  return values_[0].value;
}

Values Values::named(const std::vector<std::string>& wanted) const {
  CONCORD_CHECK(size() <= wanted.size(), ArgumentError, "there are {} values for the {} names {}", size(),
                wanted.size(), fmt::join(wanted, ", "));
  Values result;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto& [name, value] = values_[i];
    CONCORD_CHECK(name.empty() || std::ranges::find(wanted, name) != wanted.end(), ArgumentError,
                  "the name '{}' is not one of {}", name, fmt::join(wanted, ", "));
    result.add(name.empty() ? wanted[i] : name, value);
  }
  return result;
}

std::string Values::names() const {
  std::string text;
  for (std::size_t i = 0; i < size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", values_[i].name.empty() ? std::to_string(i) : values_[i].name);
  }
  return text.empty() ? "none" : text;
}

}  // namespace concord
