// Mixing in the graph, and its random numbers.
#include "concord/train/mixing.hpp"

#include <algorithm>
#include <cmath>

#include "concord/core/check.hpp"
#include "concord/core/philox.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/pointwise.hpp"

namespace concord::train {
namespace {

constexpr const char* kMixing = "train.mix";
/// What kMixing has: the share of a sample in its pixels and in the loss, and the rectangle whose pixels come from the
/// other sample.
enum MixingPlace : std::size_t { kPixels, kLoss, kTop, kBottom, kLeft, kRight, kPlaces };

/// Sample i + 1 in place of sample i.
Value partners_of(Value x) {
  const std::int64_t n = x.shape()[0];
  return n == 1 ? x : concat({slice(x, 0, 1, n), slice(x, 0, 0, 1)}, 0);
}

Value mixed(Value x, Value mixing) {
  const auto part = [&](MixingPlace place) { return slice(mixing, 0, place, place + 1); };
  const Value partner = partners_of(x), share = part(kPixels);
  if (x.shape().rank() < 4) {
    return pointwise("mix", {x, partner, share},
                     scalar::input(2) * scalar::input(0) + (1.0F - scalar::input(2)) * scalar::input(1));
  }
  const Scalar row = scalar::coordinate(1), column = scalar::coordinate(0);
  const Scalar inside = (1.0F - scalar::less(row, scalar::input(3))) * scalar::less(row, scalar::input(4)) *
                        (1.0F - scalar::less(column, scalar::input(5))) * scalar::less(column, scalar::input(6));
  const Scalar own = scalar::select(inside, 0.0F, scalar::input(2));
  return pointwise("mix", {x, partner, share, part(kTop), part(kBottom), part(kLeft), part(kRight)},
                   own * scalar::input(0) + (1.0F - own) * scalar::input(1));
}

/// In [0, 1), never 0 where it is raised to a power.
double uniform(PhiloxSequence& random) { return (static_cast<double>(random.next()) + 0.5) * 0x1p-32; }

/// Gamma(alpha, 1), up to a factor: Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables", 2000; for
/// alpha < 1 raised by one and multiplied by a power of a uniform number.
double gamma(PhiloxSequence& random, double alpha) {
  const double boost = alpha < 1 ? std::pow(uniform(random), 1 / alpha) : 1;
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    constexpr double kTwoPi = 6.283185307179586;
    const double normal = std::sqrt(-2 * std::log(uniform(random))) * std::cos(kTwoPi * uniform(random));
    const double root = 1 + c * normal, v = root * root * root;
    if (v > 0 && std::log(uniform(random)) < normal * normal / 2 + d - d * v + d * std::log(v)) return boost * d * v;
  }
}

/// Beta(alpha, alpha).
double beta(PhiloxSequence& random, double alpha) {
  const double a = gamma(random, alpha), b = gamma(random, alpha);
  return a + b > 0 ? a / (a + b) : 0.5;
}

}  // namespace

void check_mixing(const Mixing& mixing, const Samples& samples) {
  if (!mixing.is_on()) return;
  for (const double alpha : {mixing.mixup, mixing.cutmix}) {
    CONCORD_CHECK(alpha >= 0 && std::isfinite(alpha), ArgumentError,
                  "fit: the parameter {} of mixup or cutmix is not 0 or a positive number", alpha);
  }
  const TensorSpec spec = samples.feature_specs()[0].spec;
  CONCORD_CHECK(spec.dtype != DType::i32, ArgumentError, "fit: indices cannot be mixed; the features are {}",
                spec.str());
  CONCORD_CHECK(mixing.cutmix == 0 || spec.shape.rank() == 3, ArgumentError,
                "fit: cutmix needs images [channels, rows, columns]; the features are {}", spec.str());
}

Value MixedBatch::loss(const Objective& objective, const Values& outputs) const {
  const Value own = objective(outputs, labels), other = objective(outputs, partners);
  return pointwise("mix_losses", {own, other, share},
                   scalar::input(2) * scalar::input(0) + (1.0F - scalar::input(2)) * scalar::input(1));
}

MixedBatch mix(Graph& graph, const BatchValues& batch) {
  const Value mixing = graph.variable(std::make_shared<Variable>(
      kMixing, TensorSpec{DType::f32, Shape{kPlaces}}, Initializer{}, false, Tensor{}, VariableRole::transient));
  MixedBatch result;
  bool is_first = true;
  for (const auto& [name, value] : batch.features) {
    result.features.add(name, std::exchange(is_first, false) ? mixed(value, mixing) : value);
  }
  result.labels = batch.labels;
  for (const auto& [name, value] : batch.labels) result.partners.add(name, partners_of(value));
  result.share = slice(mixing, 0, kLoss, kLoss + 1);
  return result;
}

Shape mixed_sample(const Samples& samples) {
  const std::vector<ColumnSpec> columns = samples.feature_specs();
  return columns.empty() ? Shape{} : columns[0].spec.shape;
}

void write_mixing(Variables& variables, const Mixing& mixing, const Shape& image, std::uint64_t seed,
                  std::uint32_t epoch, std::int64_t batch) {
  const Philox words(seed, philox_purpose("train.mix"), epoch);
  // A sequence of its own for each batch.
  PhiloxSequence random(Philox((std::uint64_t{words.word(2 * static_cast<std::uint64_t>(batch))} << 32) |
                                   words.word(2 * static_cast<std::uint64_t>(batch) + 1),
                               philox_purpose("train.mix.batch"), epoch));
  const bool is_both = mixing.mixup > 0 && mixing.cutmix > 0;
  const bool cuts = is_both ? random.next() % 2 == 0 : mixing.cutmix > 0;
  const double share = beta(random, cuts ? mixing.cutmix : mixing.mixup);
  std::vector<float> values(kPlaces, 0.0F);
  values[kPixels] = values[kLoss] = static_cast<float>(share);
  if (cuts) {
    const auto height = static_cast<double>(image[1]), width = static_cast<double>(image[2]);
    const double side = std::sqrt(1 - share);
    const double y = std::floor(uniform(random) * height), x = std::floor(uniform(random) * width);
    const auto edge = [](double at, double most) { return std::floor(std::clamp(at, 0.0, most)); };
    const double top = edge(y - side * height / 2, height), bottom = edge(y + side * height / 2, height);
    const double left = edge(x - side * width / 2, width), right = edge(x + side * width / 2, width);
    values[kPixels] = 1;
    values[kLoss] = static_cast<float>(1 - (bottom - top) * (right - left) / (height * width));
    values[kTop] = static_cast<float>(top);
    values[kBottom] = static_cast<float>(bottom);
    values[kLeft] = static_cast<float>(left);
    values[kRight] = static_cast<float>(right);
  }
  if (variables.contains(kMixing)) variables.write(kMixing, Tensor::of<float>(Shape{kPlaces}, values));
}

}  // namespace concord::train
