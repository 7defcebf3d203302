// Einsum of ONNX: products of pairs of operands as batched matrix products.
#include <algorithm>
#include <array>
#include <map>

#include "concord/core/check.hpp"
#include "concord/onnx/operators/pointwise_call.hpp"
#include "concord/onnx/operators/products.hpp"
#include "concord/onnx/operators/views.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/reduce.hpp"

namespace concord::onnx {
namespace {

/// A value and the label of each of its axes. Axes of an ellipsis have labels that are no letters.
struct Labelled {
  Value value;
  std::string labels;
};

bool has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

struct Equation {
  std::vector<std::string> terms;
  std::string result;
};

// The dots of an ellipsis become the labels 0, 1, …, counted from the right.
std::string with_ellipsis(const std::string& term, std::size_t axes) {
  const std::size_t dots = term.find("...");
  if (dots == std::string::npos) return term;
  std::string labels;
  for (std::size_t i = axes; i-- > 0;) labels += static_cast<char>('0' + i);
  return term.substr(0, dots) + labels + term.substr(dots + 3);
}

Equation parsed_equation(std::string text, const std::vector<std::size_t>& ranks) {
  std::erase_if(text, [](char c) { return c == ' '; });
  const std::size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  Equation equation;
  std::size_t widest = 0;
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    const std::size_t comma = left.find(',');
    CONCORD_CHECK((comma == std::string::npos) == (k + 1 == ranks.size()), ArgumentError,
                  "the equation '{}' does not have {} terms", text, ranks.size());
    std::string term = left.substr(0, comma);
    const std::size_t letters = term.size() - (term.find("...") == std::string::npos ? 0 : 3);
    CONCORD_CHECK(letters <= ranks[k] && (letters == ranks[k] || letters != term.size()), ShapeError,
                  "the term '{}' is for another number of dimensions than {}", term, ranks[k]);
    widest = std::max(widest, ranks[k] - letters);
    equation.terms.push_back(with_ellipsis(term, ranks[k] - letters));
    left = comma == std::string::npos ? "" : left.substr(comma + 1);
  }
  if (arrow != std::string::npos) {
    equation.result = with_ellipsis(text.substr(arrow + 2), widest);
    return equation;
  }
  std::map<char, int> counts;  // without an arrow: the labels that occur once, sorted
  for (const std::string& term : equation.terms) {
    for (const char label : term) ++counts[label];
  }
  equation.result = with_ellipsis("...", widest);
  for (const auto& [label, count] : counts) {
    if (count == 1 && (label < '0' || label > '9')) equation.result += label;
  }
  return equation;
}

Labelled ordered(const Labelled& term, const std::string& labels) {
  Dims order;
  for (const char label : labels) order.push_back(static_cast<std::int64_t>(term.labels.find(label)));
  return {transposed(term.value, order), labels};
}

Labelled summed(const Labelled& term, const std::string& needed) {
  Dims axes;
  std::string labels;
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    if (has(needed, term.labels[i])) {
      labels += term.labels[i];
    } else {
      axes.push_back(static_cast<std::int64_t>(i));
    }
  }
  return axes.empty() ? term : Labelled{sum(term.value, axes), labels};
}

// A label that occurs twice in a term means its diagonal.
Labelled diagonal(Labelled term) {
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    const std::size_t again = term.labels.find(term.labels[i], i + 1);
    if (again == std::string::npos) continue;
    const auto from_last = [&](std::size_t axis) { return static_cast<int>(term.labels.size() - 1 - axis); };
    const Scalar is_equal = scalar::equal(scalar::coordinate(from_last(i)), scalar::coordinate(from_last(again)));
    const Value kept = pointwise("diagonal", {term.value}, scalar::select(is_equal, scalar::input(0), 0.0F));
    term.labels.erase(again, 1);
    return diagonal({sum(kept, {static_cast<std::int64_t>(again)}), term.labels});
  }
  return term;
}

// The product of two terms, summed over the labels that are not needed afterwards.
Labelled product(Labelled a, Labelled b, const std::string& needed) {
  a = summed(a, needed + b.labels);
  b = summed(b, needed + a.labels);
  std::string batch, left, right, inner;
  for (const char label : a.labels) {
    (!has(b.labels, label) ? left : has(needed, label) ? batch : inner) += label;
  }
  for (const char label : b.labels) {
    if (!has(a.labels, label)) right += label;
  }
  std::map<char, std::int64_t> sizes;
  const auto size_of_labels = [&](const std::string& labels) {
    std::int64_t size = 1;
    for (const char label : labels) size *= sizes[label];
    return size;
  };
  for (const Labelled* const term : {&a, &b}) {
    for (std::size_t i = 0; i < term->labels.size(); ++i) {
      std::int64_t& size = sizes[term->labels[i]];
      size = std::max(size, dims_of(term->value)[i]);
    }
  }
  // Axes of size 1 are broadcast to the other term's size.
  const auto matrix = [&](const Labelled& term, const std::string& labels, std::array<std::int64_t, 2> ends) {
    const Labelled ready = ordered(term, labels);
    Dims dims;
    for (const char label : labels) dims.push_back(sizes[label]);
    return reshape(expanded(ready.value, dims), {size_of_labels(batch), ends[0], ends[1]});
  };
  const std::int64_t m = size_of_labels(left), k = size_of_labels(inner), n = size_of_labels(right);
  const Value y = matmul(matrix(a, batch + left + inner, {m, k}), matrix(b, batch + inner + right, {k, n}));
  Labelled result{{}, batch + left + right};
  Dims dims;
  for (const char label : result.labels) dims.push_back(sizes[label]);
  result.value = reshape(y, Shape(dims));
  return result;
}

void einsum(Call& call) {
  std::vector<std::size_t> ranks;
  for (std::size_t k = 0; k < call.inputs(); ++k) ranks.push_back(call.rank(k));
  CONCORD_CHECK(!ranks.empty(), FormatError, "it has no input");
  const Equation equation = parsed_equation(call.text("equation", ""), ranks);
  Labelled joined = diagonal({call.number_value(0), equation.terms[0]});
  for (std::size_t k = 1; k < ranks.size(); ++k) {
    std::string needed = equation.result;
    for (std::size_t later = k + 1; later < ranks.size(); ++later) needed += equation.terms[later];
    joined = product(joined, diagonal({call.number_value(k), equation.terms[k]}), needed);
  }
  joined = summed(joined, equation.result);
  CONCORD_CHECK(std::ranges::all_of(equation.result, [&](char label) { return has(joined.labels, label); }) &&
                    joined.labels.size() == equation.result.size(),
                ArgumentError, "the result '{}' has other labels than its terms", equation.result);
  call.set(0, ordered(joined, equation.result).value, call.type(0));
}

}  // namespace

void add_einsum(Table& table) { table.add("Einsum", {.since = 12, .run = einsum}); }

}  // namespace concord::onnx
