// The formulas, pass by pass.
#include "concord/compare/tolerance/attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "concord/ops/attention.hpp"

namespace concord {
namespace {

constexpr double kFactor = 8;

/// The operands of a pass and their sizes.
class PassOperands {
 public:
  PassOperands(const ReplayedNode& node, const ops::AttentionForm& form, std::size_t operands, Magnitudes& magnitudes)
      : inputs_(node.inputs),
        magnitudes_(magnitudes),
        scale_(std::abs(static_cast<double>(form.scale))),
        kept_(form.kept()) {
    std::vector<TensorSpec> specs;
    for (const Tensor& input : node.inputs) specs.push_back(input.spec());
    const ops::AttentionSizes sizes = ops::attention_sizes(form, specs, operands);
    width_ = static_cast<double>(sizes.width);
    queries_ = static_cast<double>(sizes.queries * (sizes.heads / std::max<std::int64_t>(sizes.key_heads, 1)));
    keys_ = static_cast<double>(std::max<std::int64_t>(sizes.keys, 1));
  }

  [[nodiscard]] double scores() const { return scale_ * std::sqrt(width_) * row(kQuery) * row(kKey); }
  [[nodiscard]] double of_result() const { return (1 + scores()) * kept_ * largest(kValue); }
  [[nodiscard]] double of_query(const Tensor& diff_q) const {
    return (1 + scores()) * magnitudes_.of(diff_q).largest + scale_ * of_weights() * largest(kKey);
  }
  [[nodiscard]] double of_key(const Tensor& diff_k, const Tensor& diff_v) const {
    const double met = row(kDiff) > 0 ? magnitudes_.of(diff_v).largest / row(kDiff) : 0;
    return (1 + scores()) * magnitudes_.of(diff_k).largest +
           scale_ * of_weights() * largest(kQuery) * (met + weights_by_chance());
  }
  [[nodiscard]] double of_value(const Tensor& diff_v) const {
    return (1 + scores()) * magnitudes_.of(diff_v).largest + row(kDiff) * weights_by_chance();
  }

 private:
  enum Operand : std::size_t { kQuery, kKey, kValue, kDiff };

  [[nodiscard]] double largest(Operand operand) const { return magnitudes_.of(inputs_[operand]).largest; }
  [[nodiscard]] double row(Operand operand) const {
    constexpr std::array<std::size_t, 1> kWidth{3};
    return magnitudes_.largest_rms_along(inputs_[operand], kWidth);
  }
  [[nodiscard]] double of_weights() const { return kept_ * std::sqrt(width_) * row(kDiff) * row(kValue); }
  /// The root of the sum of the squared weights of one key, were all equal.
  [[nodiscard]] double weights_by_chance() const { return 4 * kept_ * std::sqrt(queries_) / keys_; }

  std::span<const Tensor> inputs_;
  Magnitudes& magnitudes_;
  double scale_, kept_, width_ = 0, queries_ = 0, keys_ = 0;
};

}  // namespace

double attention_tolerance(const ReplayedNode& node, std::span<const Tensor> results, std::size_t k, double unit,
                           Magnitudes& magnitudes) {
  constexpr std::size_t kOfForward = 3, kOfBackward = 6;
  if (const auto* op = dynamic_cast<const ops::Attention*>(node.op)) {
    const PassOperands pass(node, op->form(), kOfForward, magnitudes);
    // Statistics: the largest score, and what is at most 1 and relative to exp of an error of it.
    return kFactor * unit * (k == 0 ? pass.of_result() : k == 1 ? pass.scores() : 1 + pass.scores());
  }
  if (const auto* op = dynamic_cast<const ops::AttentionBackwardQuery*>(node.op)) {
    return kFactor * unit * PassOperands(node, op->form(), kOfBackward, magnitudes).of_query(results[0]);
  }
  if (const auto* op = dynamic_cast<const ops::AttentionBackwardKeyValue*>(node.op)) {
    const PassOperands pass(node, op->form(), kOfBackward, magnitudes);
    return kFactor * unit * (k == 0 ? pass.of_key(results[0], results[1]) : pass.of_value(results[1]));
  }
  return 0;
}

}  // namespace concord
