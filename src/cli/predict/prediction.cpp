// Likeliest classes, as tables, CSV and JSON.
#include "concord/cli/predict/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "concord/cli/command.hpp"
#include "concord/core/text.hpp"

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

/// With what several labels are predicted as.
std::vector<std::vector<std::string>> cells_of_answers(const std::vector<Prediction>& predictions,
                                                       const char* probability) {
  std::vector<std::vector<std::string>> rows{{"sample"}};
  for (const Answer& answer : predictions[0].answers) {
    rows[0].push_back(answer.label);
    if (!answer.name.empty()) rows[0].push_back("probability");
  }
  for (const Prediction& prediction : predictions) {
    std::vector<std::string>& row = rows.emplace_back(std::vector{prediction.sample});
    for (const Answer& answer : prediction.answers) {
      row.push_back(answer.name.empty() ? fmt::format("{}", static_cast<float>(answer.number)) : answer.name);
      if (!answer.name.empty()) row.push_back(fmt::format(fmt::runtime(probability), answer.probability));
    }
  }
  return rows;
}

std::vector<std::vector<std::string>> cells_of_texts(const std::vector<Prediction>& predictions) {
  const bool labels = std::ranges::any_of(predictions, [](const Prediction& p) { return p.label_text.has_value(); });
  std::vector<std::vector<std::string>> rows{{"sample", "text"}};
  if (labels) rows[0].insert(rows[0].end(), {"label", ""});
  for (const Prediction& p : predictions) {
    std::vector<std::string>& row = rows.emplace_back(std::vector{p.sample, p.text.value_or(p.error)});
    if (!labels) continue;
    row.push_back(p.label_text.value_or(""));
    row.push_back(p.label_text && p.label_text != p.text ? "wrong" : "");
  }
  return rows;
}

/// The cells of all predictions below a header.
std::vector<std::vector<std::string>> cells_of(const std::vector<Prediction>& predictions,
                                               const std::vector<std::string>& names, const char* probability) {
  const bool labels = has_labels(predictions);
  const std::size_t most = most_classes(predictions);
  std::vector<std::vector<std::string>> rows{{"sample"}};
  if (!predictions.empty() && !predictions[0].answers.empty()) return cells_of_answers(predictions, probability);
  if (std::ranges::any_of(predictions, [](const Prediction& p) { return p.text.has_value(); })) {
    return cells_of_texts(predictions);
  }
  if (!predictions.empty() && !predictions[0].numbers.empty()) {
    rows[0].insert(rows[0].end(), names.begin(), names.end());
    for (const Prediction& prediction : predictions) {
      rows.push_back({prediction.sample});
      for (const float number : prediction.numbers) rows.back().push_back(fmt::format("{}", number));
    }
    return rows;
  }
  for (std::size_t k = 0; k < most; ++k) {
    const std::string place = k == 0 ? std::string() : fmt::format(" {}", k + 1);
    rows[0].push_back(fmt::format("predicted{}", place));
    rows[0].push_back(fmt::format("probability{}", place));
  }
  if (labels) rows[0].insert(rows[0].end(), {"label", ""});
  for (const Prediction& prediction : predictions) {
    std::vector<std::string>& row = rows.emplace_back(std::vector{prediction.sample});
    for (std::size_t k = 0; k < most; ++k) {
      const bool is_there = k < prediction.classes.size();
      row.push_back(is_there ? class_name(names, prediction.classes[k].index) : k == 0 ? prediction.error : "");
      row.push_back(is_there ? fmt::format(fmt::runtime(probability), prediction.classes[k].probability) : "");
    }
    if (!labels) continue;
    row.push_back(prediction.label ? class_name(names, *prediction.label) : "");
    const bool is_wrong =
        prediction.label && !prediction.classes.empty() && prediction.classes[0].index != *prediction.label;
    row.push_back(is_wrong ? "wrong" : "");
  }
  return rows;
}

nlohmann::json as_json(const Likely& likely, const std::vector<std::string>& names) {
  return {{"predicted", likely.index}, {"name", class_name(names, likely.index)}, {"probability", likely.probability}};
}

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string text(1, '"');
  for (const char c : cell) text.append(c == '"' ? 2 : 1, c);
  text += '"';
  return text;
}

}  // namespace

std::vector<Likely> likeliest(std::span<const float> logits, std::size_t k) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  k = std::min(k, order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(),
      [&](std::size_t a, std::size_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  const auto largest = static_cast<double>(logits[order[0]]);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  std::vector<Likely> classes;
  for (std::size_t i = 0; i < k; ++i) {
    classes.push_back({order[i], std::exp(static_cast<double>(logits[order[i]]) - largest) / sum});
  }
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
  return table(cells_of(shown, visible, "{:.4f}"));
}

std::string prediction_csv(const std::vector<Prediction>& predictions, const std::vector<std::string>& names) {
  std::string text;
  for (const std::vector<std::string>& row : cells_of(predictions, names, "{}")) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += ',';
      text += quoted(row[i]);
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
    if (!prediction.error.empty()) one["error"] = prediction.error;
    if (!prediction.classes.empty()) one = as_json(prediction.classes[0], names);
    for (std::size_t i = 0; i < prediction.numbers.size(); ++i) one[names.at(i)] = prediction.numbers[i];
    for (const Answer& answer : prediction.answers) {
      if (answer.name.empty()) {
        one[answer.label] = answer.number;
      } else {
        one[answer.label] = {{"name", answer.name}, {"probability", answer.probability}};
      }
    }
    if (prediction.text) one["text"] = *prediction.text;
    if (prediction.label_text) one["label"] = *prediction.label_text;
    if (const auto number = number_in_text<std::int64_t>(prediction.sample)) {
      one["sample"] = *number;
    } else {
      one["sample"] = prediction.sample;
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
