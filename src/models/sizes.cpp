// Networks of other sizes than the published ones, by name: "mlp:depth=4,width=512". Used by models::find, so wherever
// a network is named.
#include <charconv>
#include <map>
#include <mutex>

#include "concord/core/check.hpp"
#include "concord/models/networks.hpp"

namespace concord::models {
namespace {

constexpr int kLargest = 1 << 20;

/// A model and the text that its views look at.
struct Sized {
  std::string description;
  Model model;
};

std::string names_of(const std::vector<Size>& sizes) {
  std::string text;
  for (const Size& size : sizes) {
    text += fmt::format("{}{} ({}, published {})", text.empty() ? "" : ", ", size.name, size.meaning, size.published);
  }
  return text;
}

/// Writes one "size=number" to its place in `values`.
void read_size(const Model& published, std::string_view text, std::vector<int>& values) {
  const std::size_t equal = std::min(text.find('='), text.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (published.sizes[i].name != text.substr(0, equal)) continue;
    const std::string_view number = text.substr(std::min(equal + 1, text.size()));
    const char* const end = number.data() + number.size();
    const auto [rest, error] = std::from_chars(number.data(), end, values[i]);
    CONCORD_CHECK(error == std::errc{} && rest == end && values[i] >= 1 && values[i] <= kLargest, ArgumentError,
                  "{}: expected {}=NUMBER from 1 to {}, got '{}'", published.name, published.sizes[i].name, kLargest,
                  text);
    return;
  }
  throw ArgumentError(
      fmt::format("{} has no size '{}'; it has {}", published.name, text.substr(0, equal), names_of(published.sizes)));
}

std::int64_t parameters_of(const Model& model) {
  Graph graph;
  const auto network = model.make({.classes = model.classes, .input = model.input});
  static_cast<void>((*network)(graph.input("x", batch_of(model, 1))));
  std::int64_t count = 0;
  for (const VariablePtr& variable : graph.variables()) {
    if (variable->trainable) count += variable->spec.shape.elements();
  }
  return count;
}

}  // namespace

Model sizable(std::vector<Size> sizes, std::function<Model(std::span<const int> sizes)> of_sizes) {
  std::vector<int> published;
  for (const Size& size : sizes) published.push_back(size.published);
  Model model = of_sizes(published);
  model.sizes = std::move(sizes);
  model.of_sizes = std::move(of_sizes);
  return model;
}

const Model& with_sizes(const Model& published, std::string_view name) {
  CONCORD_CHECK(!published.sizes.empty(), ArgumentError, "{} has one size only: leave out '{}'", published.name,
                name.substr(published.name.size()));
  static std::mutex mutex;
  static std::map<std::string, Sized, std::less<>> made;  // its nodes stay where they are
  const std::lock_guard lock(mutex);
  if (const auto found = made.find(name); found != made.end()) return found->second.model;

  std::vector<int> values;
  for (const Size& size : published.sizes) values.push_back(size.published);
  const std::string_view list = name.substr(published.name.size() + 1);
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    read_size(published, list.substr(at, comma - at), values);
    at = comma + 1;
  }
  Sized sized{fmt::format("{}; here {}", published.description, list), published.of_sizes(values)};
  sized.model.parameters = parameters_of(sized.model);
  Sized& kept = made.emplace(name, std::move(sized)).first->second;
  kept.model.name = made.find(name)->first;
  kept.model.description = kept.description;
  return kept.model;
}

}  // namespace concord::models
