// A step whose parameters are divided among ranks. Few sums over ranks: small gradients travel together, and so do the
// numbers of the step.
#include <utility>

#include "concord/ops/all_finite.hpp"
#include "concord/ops/all_reduce.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/optim/step_numbers.hpp"

namespace concord::optim {
namespace {

/// Gradients of fewer elements wait for others, up to so many together.
constexpr std::int64_t kTogether = std::int64_t{1} << 18;

const Shard& shard_of(Value weight) { return weight.node().variable->shard; }

Value flat(Value x) { return reshape(x, Shape{x.shape().elements()}); }

void sum_together(std::vector<Value>& gradients, const std::vector<std::size_t>& places) {
  if (places.empty()) return;
  std::vector<Value> parts;
  for (const std::size_t place : places) parts.push_back(flat(gradients[place]));
  const Value sums = all_reduce(parts.size() == 1 ? parts[0] : concat(parts, 0));
  std::int64_t begin = 0;
  for (const std::size_t place : places) {
    const Shape shape = gradients[place].shape();
    const std::int64_t end = begin + shape.elements();
    gradients[place] = reshape(places.size() == 1 ? sums : slice(sums, 0, begin, end), shape);
    begin = end;
  }
}

}  // namespace

void sum_whole_ones(std::vector<Value>& gradients, const std::vector<Value>& weights) {
  std::vector<std::size_t> waiting;
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!shard_of(weights[i]).is_whole()) continue;
    const std::int64_t own = gradients[i].shape().elements();
    if (own >= kTogether) {
      sum_together(gradients, {i});
      continue;
    }
    if (elements + own > kTogether) {
      sum_together(gradients, std::exchange(waiting, {}));
      elements = 0;
    }
    waiting.push_back(i);
    elements += own;
  }
  sum_together(gradients, waiting);
}

Gradients measured_over_parts(const std::vector<Value>& weights, const std::vector<Value>& gradients,
                              const MinimizeOptions& options, Value& finite_loss, bool wants_norm, bool wants_finite) {
  std::vector<Value> whole_norms, part_norms;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    names.push_back(weights[i].name());
    if (wants_norm) (shard_of(weights[i]).is_whole() ? whole_norms : part_norms).push_back(norm_of(gradients[i]));
  }
  // What differs from rank to rank, one row for each: whether the loss is finite, then whether the gradients are, …
  std::vector<Value> own{flat(pointwise("finite_loss", {finite_loss}, scalar::input(0) * 0.0F))};
  if (wants_finite) own.push_back(flat(all_finite(gradients, names)));
  if (!part_norms.empty()) own.push_back(flat(norm_of_norms(part_norms)));
  const auto numbers = static_cast<std::int64_t>(own.size());
  const Value all =
      flat(all_gather(own.size() == 1 ? own[0] : concat(own, 0), options.model_rank, options.model_ranks));
  const auto number = [&](int of, std::int64_t place) {
    const std::int64_t at = of * numbers + place;
    return reshape(slice(all, 0, at, at + 1), Shape{});
  };
  Gradients known;
  for (int of = 0; of < options.model_ranks; ++of) {
    finite_loss = of == 0 ? number(of, 0) : finite_loss + number(of, 0);
    if (wants_finite) known.finite = of == 0 ? number(of, 1) : known.finite * number(of, 1);
    if (!part_norms.empty()) whole_norms.push_back(number(of, numbers - 1));
  }
  if (wants_norm) known.norm = norm_of_norms(std::move(whole_norms));
  return known;
}

}  // namespace concord::optim
