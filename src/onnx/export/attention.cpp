// Attention: products, softmax and the mask. The gradients compute the weights again, as the operators do.
#include "concord/ops/attention.hpp"

#include <limits>
#include <numeric>

#include "concord/onnx/export/rules.hpp"

namespace concord::onnx {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

std::vector<float> counted(std::int64_t count) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return numbers;
}

/// Queries, keys and values by heads, and the scores with what the mask hides as −∞.
class Scores {
 public:
  /// `first` is the number of operands before the optional ones.
  Scores(NodeExport& x, const ops::AttentionForm& form, std::size_t first)
      : x_(x), form_(form), specs_(specs_of(x)), sizes(ops::attention_sizes(form, specs_, first)) {
    if (form.dropout > 0) NodeExport::refuse("ONNX cannot draw its dropout; build the network without dropout");
    q = by_heads(x.in(0));
    k = shared(by_heads(x.in(1)));
    v = shared(by_heads(x.in(2)));
    scores = masked(x.multiply(x.add("MatMul", {q, x.transpose(k, {0, 1, 3, 2})}), form.scale));
  }

  /// (B, T, H, D) ↔ (B, H, T, D) where the layout asks for it.
  std::string by_heads(const std::string& name) { return sizes.by_tokens() ? x_.transpose(name, {0, 2, 1, 3}) : name; }
  /// Sums over the heads that share a key head.
  std::string sum_shared(const std::string& diff) {
    if (repeats() == 1) return diff;
    const std::string parts = x_.add("Reshape", {diff, x_.writer().sizes(by_key_head(repeats()))});
    return x_.squeeze(x_.reduce("ReduceSum", parts, {2}), {2});
  }
  /// Whether a query may see no key.
  [[nodiscard]] bool may_be_empty() const {
    return form_.mask || form_.lengths || (form_.causal == ops::Causal::last && sizes.keys < sizes.queries);
  }
  /// 0 for queries that see no key: there `weights` is NaN.
  std::string without_empty(const std::string& weights) {
    if (!may_be_empty()) return weights;
    const std::string is_hidden = x_.add("Equal", {scores, x_.writer().number(kHidden)});
    return x_.add("Where", {is_hidden, x_.writer().number(0), weights});
  }

 private:
  static std::vector<TensorSpec> specs_of(const NodeExport& x) {
    std::vector<TensorSpec> specs;
    for (const Value& input : x.node().inputs) specs.push_back(input.spec());
    return specs;
  }
  [[nodiscard]] std::int64_t repeats() const { return sizes.heads / sizes.key_heads; }
  /// (B, key heads, count, S, D)
  [[nodiscard]] Sizes by_key_head(std::int64_t count) const {
    return {x_.in_sizes(1)[0], {sizes.key_heads}, {count}, {sizes.keys}, {sizes.width}};
  }
  std::string shared(const std::string& name) {
    if (repeats() == 1) return name;
    const std::string wide = x_.add("Expand", {x_.unsqueeze(name, {2}), x_.writer().sizes(by_key_head(repeats()))});
    return x_.add("Reshape",
                  {wide, x_.writer().sizes({x_.in_sizes(1)[0], {sizes.heads}, {sizes.keys}, {sizes.width}})});
  }
  std::string where(const std::string& condition, const std::string& name) {
    return x_.add("Where", {condition, name, x_.writer().number(kHidden)});
  }

  std::string masked(std::string name) {
    GraphWriter& w = x_.writer();
    const std::int64_t t = sizes.queries, s = sizes.keys;
    if (form_.mask) name = x_.add_to(name, x_.in(sizes.mask));
    std::string length;
    if (form_.lengths) {
      length = x_.unsqueeze(x_.cast(x_.in(sizes.lengths), ElementType::f32), {1, 2, 3});
      name = where(x_.add("Less", {w.tensor(Shape{s}, counted(s)), length}), name);
    }
    if (form_.causal == ops::Causal::last && form_.lengths) {
      const std::string last = x_.add_to(w.tensor(Shape{t, 1}, counted(t)), x_.subtract(length, w.number(float(t))));
      return where(x_.add("LessOrEqual", {w.tensor(Shape{s}, counted(s)), last}), name);
    }
    if (form_.causal == ops::Causal::none) return name;
    std::vector<float> hidden;
    const std::int64_t more = form_.causal == ops::Causal::last ? s - t : 0;
    for (std::int64_t i = 0; i < t; ++i) {
      for (std::int64_t j = 0; j < s; ++j) hidden.push_back(j <= i + more ? 0 : kHidden);
    }
    return x_.add_to(name, w.tensor(Shape{t, s}, hidden));
  }

  NodeExport& x_;
  const ops::AttentionForm& form_;
  std::vector<TensorSpec> specs_;

 public:
  ops::AttentionSizes sizes;
  std::string q, k, v, scores;
};

void write_attention(NodeExport& x) {
  Scores s(x, x.op<ops::Attention>().form(), 3);
  const std::string weights = s.without_empty(x.add("Softmax", {s.scores}, {whole("axis", -1)}));
  if (x.is_used(1) || x.is_used(2)) {
    const std::string largest = x.reduce("ReduceMax", s.scores, {3});
    const std::string total = x.reduce("ReduceSum", x.add("Exp", {x.subtract(s.scores, largest)}), {3});
    if (x.is_used(1)) x.bind(1, x.squeeze(x.add_to(largest, x.add("Log", {total})), {3}));
    if (x.is_used(2)) {
      const auto row = [&](const std::string& name) { return x.unsqueeze(x.squeeze(name, {3}), {0}); };
      x.bind(2, x.concat({row(largest), row(x.add("Reciprocal", {total}))}, 0));
    }
  }
  x.bind(0, s.by_heads(x.add("MatMul", {weights, s.v})));
}

/// The weights and the gradients of the scores, from q, k, v, diff_dst, statistics, delta.
struct ScoreGradient {
  std::string weights, diff, diff_scores;
  ScoreGradient(NodeExport& x, const ops::AttentionForm& form, Scores& s) {
    const auto statistic = [&](std::int64_t i) {
      return x.unsqueeze(x.squeeze(x.slice(x.in(4), 0, i, i + 1), {0}), {3});
    };
    const std::string exponentials = x.add("Exp", {x.subtract(s.scores, statistic(0))});
    weights = s.without_empty(x.multiply(exponentials, statistic(1)));
    diff = s.by_heads(x.in(3));
    const std::string delta = s.sizes.by_tokens() ? x.transpose(x.in(5), {0, 2, 1}) : x.in(5);
    const std::string diff_weights = x.add("MatMul", {diff, x.transpose(s.v, {0, 1, 3, 2})});
    const std::string slope = x.subtract(diff_weights, x.unsqueeze(delta, {3}));
    diff_scores = x.multiply(x.multiply(weights, slope), form.scale);
  }
};

void write_backward_query(NodeExport& x) {
  const ops::AttentionForm& form = x.op<ops::AttentionBackwardQuery>().form();
  Scores s(x, form, 6);
  const ScoreGradient g(x, form, s);
  x.bind(0, s.by_heads(x.add("MatMul", {g.diff_scores, s.k})));
}

void write_backward_key_value(NodeExport& x) {
  const ops::AttentionForm& form = x.op<ops::AttentionBackwardKeyValue>().form();
  Scores s(x, form, 6);
  const ScoreGradient g(x, form, s);
  const auto product = [&](const std::string& a, const std::string& b) {
    return s.by_heads(s.sum_shared(x.add("MatMul", {x.transpose(a, {0, 1, 3, 2}), b})));
  };
  if (x.is_used(0)) x.bind(0, product(g.diff_scores, s.q));
  if (x.is_used(1)) x.bind(1, product(g.weights, g.diff));
}

}  // namespace

void add_attention_rules(Rules& rules) {
  rules[typeid(ops::Attention)] = write_attention;
  rules[typeid(ops::AttentionBackwardQuery)] = write_backward_query;
  rules[typeid(ops::AttentionBackwardKeyValue)] = write_backward_key_value;
}

}  // namespace concord::onnx
