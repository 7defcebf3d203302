// Attention and its gradients from all scores (ops/attention.hpp): p = exp(scale·q·k + mask − largest) / sum, dst = Σ
// p·m·v with the factors m of dropout; in the gradients ds = p·(m·(diff_dst·v) − delta).
#include "concord/ops/attention.hpp"

#include <shared/attention_dropout.h>

#include <algorithm>
#include <cmath>

#include "concord/compare/reference64/families.hpp"

namespace concord::float64 {
namespace {

/// The operands of one of the three operators, and one query with one key among them.
class Scores {
 public:
  /// `first`: the operands before those of the form.
  Scores(const ops::AttentionForm& form, const ReplayedNode& node, std::size_t first) : form_(form) {
    std::vector<TensorSpec> specs;
    for (const Tensor& input : node.inputs) specs.push_back(input.spec());
    s_ = ops::attention_sizes(form, specs, first);
    q = doubles(node.inputs[0]);
    k = doubles(node.inputs[1]);
    v = doubles(node.inputs[2]);
    if (form.mask) mask_ = doubles(node.inputs[s_.mask]);
    if (form.lengths) lengths_ = doubles(node.inputs[s_.lengths]);
    if (form.dropout > 0) state_ = node.inputs[s_.state];
  }

  [[nodiscard]] std::int64_t rows() const { return s_.batch * s_.heads * s_.queries; }
  [[nodiscard]] std::int64_t keys() const { return s_.keys; }
  [[nodiscard]] std::int64_t width() const { return s_.width; }
  /// Where the values of a query row stand, those of a key it may see, and its delta.
  [[nodiscard]] std::size_t query(std::int64_t row) const {
    const auto [batch, head, t] = split(row);
    return static_cast<std::size_t>(s_.queries_of(batch, head) + t * s_.query_pitch());
  }
  [[nodiscard]] std::size_t key(std::int64_t row, std::int64_t s) const {
    const auto [batch, head, t] = split(row);
    return static_cast<std::size_t>(s_.keys_of(batch, head / (s_.heads / s_.key_heads)) + s * s_.key_pitch());
  }
  [[nodiscard]] std::size_t delta(std::int64_t row) const {
    const auto [batch, head, t] = split(row);
    return static_cast<std::size_t>(s_.delta_of(batch, head, t));
  }
  /// -infinity where the query does not see the key; NaN for a length outside [0, S].
  [[nodiscard]] double score(std::int64_t row, std::int64_t s) const {
    const auto [batch, head, t] = split(row);
    const std::int64_t length =
        form_.lengths ? static_cast<std::int64_t>(lengths_[static_cast<std::size_t>(batch)]) : s_.keys;
    if (length < 0 || length > s_.keys) return NAN;
    std::int64_t limit = length;
    if (form_.causal == ops::Causal::first) limit = std::min(length, t + 1);
    if (form_.causal == ops::Causal::last) limit = std::min(length, t + 1 + length - s_.queries);
    if (s >= limit) return -INFINITY;
    const double product = dot(q, query(row), k, key(row, s)) * static_cast<double>(form_.scale);
    if (!form_.mask) return product;
    const double added = mask_[static_cast<std::size_t>(batch * s_.mask_strides[0] + head * s_.mask_strides[1] +
                                                        t * s_.mask_strides[2] + s)];
    return added == -INFINITY ? added : product + added;
  }
  /// What dropout multiplies the weight by.
  [[nodiscard]] double factor(std::int64_t row, std::int64_t s) const {
    if (form_.dropout == 0) return 1;
    const auto state = state_.values<std::int32_t>();
    const auto word = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
    const attention_dropout dropout =
        dropout_of(word(state[0]), word(state[1]), word(state[2]), form_.purpose, form_.keep());
    const auto [batch, head, t] = split(row);
    const bool is_kept = keeps_weight(dropout, word(batch * s_.heads + head), word(t), word(s), word(s_.queries));
    return is_kept ? static_cast<double>(form_.kept()) : 0.0;
  }
  [[nodiscard]] double dot(const Values& a, std::size_t at_a, const Values& b, std::size_t at_b) const {
    double sum = 0;
    for (std::size_t d = 0; d < static_cast<std::size_t>(s_.width); ++d) sum += a[at_a + d] * b[at_b + d];
    return sum;
  }
  /// What has a weight of 0 is not read.
  void add(double weight, const Values& from, std::size_t at_from, Values& to, std::size_t at_to) const {
    if (weight == 0) return;
    for (std::size_t d = 0; d < static_cast<std::size_t>(s_.width); ++d) to[at_to + d] += weight * from[at_from + d];
  }
  [[nodiscard]] double scale() const { return static_cast<double>(form_.scale); }

  Values q, k, v;

 private:
  struct Place {
    std::int64_t batch, head, t;
  };
  [[nodiscard]] Place split(std::int64_t row) const {
    return {row / s_.queries / s_.heads, row / s_.queries % s_.heads, row % s_.queries};
  }
  ops::AttentionForm form_;
  ops::AttentionSizes s_{};
  Values mask_, lengths_;
  Tensor state_;
};

/// The weight before dropout; 0 for what is hidden.
double weight_of(double score, double largest, double inverse) {
  return score == -INFINITY ? 0 : std::exp(score - largest) * inverse;
}

Results forward(const ops::Attention& op, const ReplayedNode& node) {
  const Scores scores(op.form(), node, 3);
  Values dst = zeros(node.results[0]), logsumexps = zeros(node.results[1]), statistics = zeros(node.results[2]);
  for (std::int64_t row = 0; row < scores.rows(); ++row) {
    Values line;
    for (std::int64_t s = 0; s < scores.keys(); ++s) line.push_back(scores.score(row, s));
    const auto i = static_cast<std::size_t>(row);
    double largest = -INFINITY;  // of those that are numbers
    for (const double score : line) largest = std::fmax(largest, score);
    double sum = 0;
    for (const double score : line) sum += weight_of(score, largest, 1);
    const double inverse = sum == 0 ? 0 : 1 / sum;
    logsumexps[i] = largest + std::log(sum);
    statistics[i] = largest;
    statistics[logsumexps.size() + i] = inverse;
    for (std::int64_t s = 0; s < scores.keys(); ++s) {
      const double weight = weight_of(line[static_cast<std::size_t>(s)], largest, inverse) * scores.factor(row, s);
      scores.add(weight, scores.v, scores.key(row, s), dst, scores.query(row));
    }
  }
  return {{std::move(dst), std::move(logsumexps), std::move(statistics)}};
}

struct Gradients {
  Values q, k, v;
};

Gradients gradients_of(const ops::AttentionForm& form, const ReplayedNode& node) {
  const Scores scores(form, node, 6);
  const Values diff = doubles(node.inputs[3]), statistics = doubles(node.inputs[4]), deltas = doubles(node.inputs[5]);
  Gradients g{zeros(node.inputs[0]), zeros(node.inputs[1]), zeros(node.inputs[2])};
  const auto rows = static_cast<std::size_t>(scores.rows());
  for (std::int64_t row = 0; row < scores.rows(); ++row) {
    const auto i = static_cast<std::size_t>(row);
    const std::size_t query = scores.query(row);
    for (std::int64_t s = 0; s < scores.keys(); ++s) {
      const double weight = weight_of(scores.score(row, s), statistics[i], statistics[rows + i]);
      const double factor = scores.factor(row, s);
      const std::size_t key = scores.key(row, s);
      const double through = factor == 0 ? 0 : factor * scores.dot(diff, query, scores.v, key);
      const double slope = weight == 0 ? 0 : weight * (through - deltas[scores.delta(row)]) * scores.scale();
      scores.add(slope, scores.k, key, g.q, query);
      scores.add(slope, scores.q, query, g.k, key);
      scores.add(weight * factor, diff, query, g.v, key);
    }
  }
  return g;
}

}  // namespace

Results attention(const ReplayedNode& node) {
  if (const auto* op = dynamic_cast<const ops::Attention*>(node.op)) return forward(*op, node);
  if (const auto* op = dynamic_cast<const ops::AttentionBackwardQuery*>(node.op)) {
    return {{gradients_of(op->form(), node).q}};
  }
  if (const auto* op = dynamic_cast<const ops::AttentionBackwardKeyValue*>(node.op)) {
    Gradients g = gradients_of(op->form(), node);
    return {{std::move(g.k), std::move(g.v)}};
  }
  return {};
}

}  // namespace concord::float64
