// Likeliest classes, as tables, CSV and JSON.
#include "concord/cli/predict/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "concord/cli/command.hpp"
#include "concord/core/utf8.hpp"

namespace concord::cli {
namespace {

bool has_labels(const std::vector<Prediction>& predictions) {
  return std::ranges::any_of(predictions, [](const Prediction& p) { return p.label.has_value(); });
}

std::size_t most_classes(const std::vector<Prediction>& predictions) {
  std::size_t most = 1;
  for (const Prediction& prediction : predictions) most = std::max(most, prediction.classes.size());
  return most;
}

using Cells = std::vector<std::vector<std::string>>;

struct Style {
  const char* probability;  // a format
  bool is_for_programs;     // each column has a name of its own
};

/// Adds the name of a column, which no other column has.
void add_name(std::vector<std::string>& header, std::string name) {
  while (std::ranges::find(header, name) != header.end()) name += " (predicted)";
  header.push_back(std::move(name));
}

/// What several labels and targets are predicted as.
void add_answers(Cells& rows, const std::vector<Prediction>& predictions, const Style& style) {
  const auto first = std::ranges::find_if(predictions, [](const Prediction& p) { return !p.answers.empty(); });
  for (const Answer& answer : first->answers) {
    add_name(rows[0], answer.label);
    if (answer.name.empty()) continue;
    if (style.is_for_programs) {
      add_name(rows[0], answer.label + " probability");
    } else {
      rows[0].emplace_back("probability");
    }
  }
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    for (const Answer& answer : predictions[i].answers) {
      rows[i + 1].push_back(answer.name.empty() ? fmt::format("{}", static_cast<float>(answer.number)) : answer.name);
      if (answer.name.empty()) continue;
      rows[i + 1].push_back(fmt::format(fmt::runtime(style.probability), answer.probability));
    }
  }
}

void add_numbers(Cells& rows, const std::vector<Prediction>& predictions, const std::vector<std::string>& names) {
  for (const std::string& name : names) add_name(rows[0], name);
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    for (const float number : predictions[i].numbers) rows[i + 1].push_back(fmt::format("{}", number));
  }
}

/// A label, and whether the prediction is another: in a table a mark, for programs yes or no.
void add_label(std::vector<std::string>& row, const std::optional<std::string>& label, bool is_right,
               const Style& style) {
  row.push_back(label.value_or(""));
  if (!label) {
    row.emplace_back();
  } else if (style.is_for_programs) {
    row.emplace_back(is_right ? "yes" : "no");
  } else {
    row.emplace_back(is_right ? "" : "wrong");
  }
}

void add_label_names(std::vector<std::string>& header, const Style& style) {
  header.insert(header.end(), {"label", style.is_for_programs ? "correct" : ""});
}

void add_texts(Cells& rows, const std::vector<Prediction>& predictions, const Style& style) {
  const bool labels = std::ranges::any_of(predictions, [](const Prediction& p) { return p.label_text.has_value(); });
  rows[0].emplace_back("text");
  if (labels) add_label_names(rows[0], style);
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const Prediction& p = predictions[i];
    if (!p.text) continue;
    rows[i + 1].push_back(*p.text);
    if (labels) add_label(rows[i + 1], p.label_text, p.label_text == p.text, style);
  }
}

void add_classes(Cells& rows, const std::vector<Prediction>& predictions, const std::vector<std::string>& names,
                 const Style& style) {
  const bool labels = has_labels(predictions);
  const std::size_t most = most_classes(predictions);
  for (std::size_t k = 0; k < most; ++k) {
    const std::string place = k == 0 ? std::string() : fmt::format(" {}", k + 1);
    rows[0].push_back(fmt::format("predicted{}", place));
    rows[0].push_back(fmt::format("probability{}", place));
  }
  if (labels) add_label_names(rows[0], style);
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const Prediction& prediction = predictions[i];
    for (const Likely& likely : prediction.classes) {
      rows[i + 1].push_back(class_name(names, likely.index));
      rows[i + 1].push_back(fmt::format(fmt::runtime(style.probability), likely.probability));
    }
    if (!labels) continue;
    rows[i + 1].resize(1 + 2 * most);
    std::optional<std::string> label;
    if (prediction.label) label = class_name(names, *prediction.label);
    const bool is_right = !prediction.classes.empty() && prediction.classes[0].index == prediction.label;
    add_label(rows[i + 1], label, is_right || prediction.classes.empty(), style);
  }
}

/// The cells of all predictions below a header. Errors have a column of their own, the last one.
Cells cells_of(const std::vector<Prediction>& predictions, const std::vector<std::string>& names, const Style& style) {
  const auto any = [&](const auto& has) { return std::ranges::any_of(predictions, has); };
  Cells rows{{"sample"}};
  for (const Prediction& prediction : predictions) rows.push_back({prediction.sample});
  if (any([](const Prediction& p) { return !p.answers.empty(); })) {
    add_answers(rows, predictions, style);
  } else if (any([](const Prediction& p) { return p.text.has_value(); })) {
    add_texts(rows, predictions, style);
  } else if (any([](const Prediction& p) { return !p.numbers.empty(); })) {
    add_numbers(rows, predictions, names);
  } else if (!std::ranges::all_of(predictions, [](const Prediction& p) { return !p.error.empty(); })) {
    add_classes(rows, predictions, names, style);
  }
  if (any([](const Prediction& p) { return !p.error.empty(); })) {
    const std::size_t width = rows[0].size();
    add_name(rows[0], "error");
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      rows[i + 1].resize(width);
      rows[i + 1].push_back(predictions[i].error);
    }
  }
  return rows;
}

nlohmann::json as_json(const Likely& likely, const std::vector<std::string>& names) {
  return {{"predicted", likely.index},
          {"name", in_utf8(class_name(names, likely.index))},
          {"probability", likely.probability}};
}

/// Readers of tables take spaces around a field for none of it.
std::string quoted(const std::string& cell) {
  const bool has_ends = cell.starts_with(' ') || cell.ends_with(' ') || cell.starts_with('\t') || cell.ends_with('\t');
  if (!has_ends && cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string text(1, '"');
  for (const char c : cell) text.append(c == '"' ? 2 : 1, c);
  text += '"';
  return text;
}

}  // namespace

std::vector<Likely> likeliest(std::span<const float> scores, std::size_t k, Scores kind) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  k = std::min(k, order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(),
      [&](std::size_t a, std::size_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  const auto largest = static_cast<double>(scores[order[0]]);
  const auto weight = [&](float score) {
    return kind == Scores::probabilities ? static_cast<double>(score) : std::exp(static_cast<double>(score) - largest);
  };
  double sum = kind == Scores::probabilities ? 1 : 0;
  for (std::size_t i = 0; kind == Scores::logits && i < scores.size(); ++i) sum += weight(scores[i]);
  std::vector<Likely> classes;
  for (std::size_t i = 0; i < k; ++i) classes.push_back({order[i], weight(scores[order[i]]) / sum});
  return classes;
}

std::string class_name(const std::vector<std::string>& names, std::size_t index) {
  return index < names.size() ? names[index] : fmt::format("{}", index);
}

std::string prediction_table(const std::vector<Prediction>& predictions, const std::vector<std::string>& names) {
  // Blanks at an end, as tokens and letters have them, are seen only in quotes.
  const auto make_visible = [](std::string& text) {
    if (text.starts_with(' ') || text.ends_with(' ')) text = fmt::format("\"{}\"", text);
  };
  std::vector<std::string> visible = names;
  std::vector<Prediction> shown = predictions;
  std::ranges::for_each(visible, make_visible);
  for (Prediction& prediction : shown) {
    if (prediction.text) make_visible(*prediction.text);
  }
  return table(cells_of(shown, visible, {"{:.4f}", false}));
}

std::string prediction_csv(const std::vector<Prediction>& predictions, const std::vector<std::string>& names) {
  std::string text;
  for (const std::vector<std::string>& row : cells_of(predictions, names, {"{}", true})) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += ',';
      text += quoted(in_utf8(row[i]));
    }
    text += "\r\n";
  }
  return text;
}

std::string prediction_json(const std::vector<Prediction>& predictions, const std::vector<std::string>& names) {
  const std::size_t most = most_classes(predictions);
  nlohmann::json all = nlohmann::json::array();
  for (const Prediction& prediction : predictions) {
    nlohmann::json one = nlohmann::json::object();
    if (!prediction.classes.empty()) one = as_json(prediction.classes[0], names);
    if (!prediction.error.empty()) one["error"] = in_utf8(prediction.error);
    // Below a key of their own: a column may have any name, also that of another key here.
    for (std::size_t i = 0; i < prediction.numbers.size(); ++i) {
      one["predictions"][in_utf8(names.at(i))] = prediction.numbers[i];
    }
    for (const Answer& answer : prediction.answers) {
      nlohmann::json& to = one["predictions"][in_utf8(answer.label)];
      if (answer.name.empty()) {
        to = answer.number;
      } else {
        to = {{"name", in_utf8(answer.name)}, {"probability", answer.probability}};
      }
    }
    if (prediction.text) one["text"] = in_utf8(*prediction.text);
    if (prediction.label_text) one["label"] = in_utf8(*prediction.label_text);
    if (prediction.row) {
      one["sample"] = *prediction.row;
    } else {
      one["sample"] = in_utf8(prediction.sample);
    }
    if (most > 1) {
      for (const Likely& likely : prediction.classes) one["classes"].push_back(as_json(likely, names));
    }
    if (prediction.label) one["label"] = *prediction.label;
    all.push_back(std::move(one));
  }
  return json_text(all);
}

}  // namespace concord::cli
