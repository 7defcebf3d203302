// How a network is drawn: a signal goes through one layer after the other; each layer may be followed by a chain of
// pointwise steps, so that fusion meets every sequence of steps behind every operator.
#include "compile/random_network.hpp"

#include <array>
#include <cmath>

#include "concord/core/philox.hpp"
#include "concord/ops/activations.hpp"
#include "concord/ops/conv.hpp"
#include "concord/ops/copy.hpp"
#include "concord/ops/gradient.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/normalise.hpp"
#include "concord/ops/pointwise.hpp"
#include "concord/ops/pool.hpp"
#include "concord/ops/rearrange.hpp"
#include "concord/ops/reduce.hpp"
#include "concord/ops/row_norm.hpp"
#include "concord/ops/scan.hpp"
#include "concord/ops/softmax.hpp"

namespace concord::test {
namespace {

class Drawing {
 public:
  Drawing(RandomNetwork& network, std::uint32_t seed)
      : network_(network), random_(Philox(seed, philox_purpose("network"))), seed_(seed) {}

  void draw() {
    const bool is_image = below(5) < 3;
    Value x = operand(is_image ? image_shape() : matrix_shape());
    x = chain(x, below(3));
    const std::size_t layers = 1 + below(3);
    for (std::size_t i = 0; i < layers; ++i) {
      const Value before = x;
      x = x.shape().rank() == 4 ? image_layer(x) : matrix_layer(x);
      x = chain(x, below(6));
      if (x.shape() == before.shape() && below(3) == 0) x = chain(x + before, below(3));
    }
    const Value loss = sum(x * operand(x.shape()));
    const std::vector<Value> slopes = gradient(loss, sources_);
    network_.outputs = {x, loss};
    network_.outputs.insert(network_.outputs.end(), slopes.begin(), slopes.end());
  }

 private:
  std::size_t below(std::size_t n) { return random_.below(static_cast<std::uint32_t>(n)); }
  std::int64_t size(std::int64_t most) { return 1 + static_cast<std::int64_t>(below(static_cast<std::size_t>(most))); }
  template <class T, std::size_t N>
  T one_of(const std::array<T, N>& values) {
    return values[below(N)];
  }
  /// Few, so that programs share compiled kernels: a formula is compiled with its numbers.
  float number() { return one_of(std::array{0.5F, 0.25F, 2.0F, -1.0F, 0.3F, -0.75F, 1.5F, 3.0F}); }

  Shape image_shape() {
    return {size(3), one_of(std::array<std::int64_t, 8>{1, 2, 3, 4, 8, 12, 16, 17}), size(12), size(12)};
  }
  Shape matrix_shape() {
    constexpr std::array<std::int64_t, 8> kSizes{1, 2, 3, 5, 8, 16, 17, 33};
    if (below(3) == 0) return {size(3), one_of(kSizes), one_of(kSizes)};
    return {one_of(kSizes), one_of(kSizes)};
  }

  /// An input or a variable of numbers in [-1.7, 1.7), by which the loss is differentiated.
  Value operand(const Shape& shape) {
    const std::string name = "x" + std::to_string(sources_.size());
    Tensor numbers(TensorSpec{DType::f32, shape});
    const Philox stream(seed_, philox_purpose(name));
    std::uint64_t index = 0;
    for (float& x : numbers.values<float>()) x = 3.4F * stream.uniform(index++) - 1.7F;
    if (below(2) == 0) {
      sources_.push_back(network_.graph.input(name, {DType::f32, shape}));
      network_.inputs.emplace(name, std::move(numbers));
    } else {
      const auto variable = std::make_shared<Variable>(Variable{name, {DType::f32, shape}, {}, true, numbers});
      sources_.push_back(network_.graph.variable(variable));
      network_.variables.emplace(name, std::move(numbers));
    }
    return sources_.back();
  }

  /// As `operand`, of small whole numbers.
  Value whole_numbers(const Shape& shape, DType type) {
    const std::string name = "i" + std::to_string(network_.inputs.size());
    Tensor numbers(TensorSpec{type, shape});
    const auto draw = [&](auto values) {
      for (auto& x : values) x = static_cast<std::remove_reference_t<decltype(x)>>(below(4));
    };
    type == DType::i32 ? draw(numbers.values<std::int32_t>()) : draw(numbers.values<std::uint8_t>());
    const Value value = network_.graph.input(name, numbers.spec());
    network_.inputs.emplace(name, std::move(numbers));
    return value;
  }

  /// A shape that broadcasts to `shape`: the whole, a scalar, one value a channel or row, without its first axes.
  Shape broadcast_shape(const Shape& shape) {
    std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
    switch (below(6)) {
      case 0:
      case 1: return shape;
      case 2: return Shape{1};
      case 3:
        for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = i == 1 ? dims[i] : 1;
        return Shape(dims);
      case 4: return Shape(std::vector<std::int64_t>(dims.begin() + 1, dims.end()));
      default:
        for (std::int64_t& dim : dims) dim = below(2) == 0 ? dim : 1;
        return Shape(dims);
    }
  }

  Value chain(Value x, std::size_t steps) {
    for (std::size_t i = 0; i < steps; ++i) x = step(x);
    return x;
  }

  Value step(Value x) {
    switch (below(4)) {
      case 0: return number_step(x);
      case 1: return activation(x);
      default: return below(2) == 0 ? operand_step(x) : number_step(x);
    }
  }

  Value number_step(Value x) {
    const float c = number();
    switch (below(9)) {
      case 0:
      case 1: return x * c;
      case 2:
      case 3: return x + c;
      case 4: return x - c;
      case 5: return c - x;
      case 6: return x / c;
      case 7: return clamp(x, -std::abs(c), 2 * std::abs(c));
      default: return -x;
    }
  }

  Value activation(Value x) {
    switch (below(20)) {
      case 0:
      case 1:
      case 2: return relu(x);
      case 3: return leaky_relu(x, 0.1F);
      case 4: return elu(x);
      case 5: return sigmoid(x);
      case 6: return tanh(x);
      case 7: return silu(x);
      case 8: return gelu(x);
      case 9: return gelu_tanh(x);
      case 10: return softplus(x);
      case 11: return hard_sigmoid(x);
      case 12: return hard_swish(x);
      case 13: return exp(-square(x));
      case 14: return log(square(x) + 0.5F);
      case 15: return sqrt(square(x) + 0.25F);
      case 16: return abs(x);
      case 17: return selu(x);
      case 18: return mish(x);
      default: return softsign(x);
    }
  }

  Value operand_step(Value x) {
    if (below(8) == 0) {
      const DType type = below(2) == 0 ? DType::i32 : DType::u8;
      const Value whole = whole_numbers(broadcast_shape(x.shape()), type);
      return below(2) == 0 ? x * cast(whole, DType::f32) : where(whole, x, x * number());
    }
    const Value y = operand(broadcast_shape(x.shape()));
    switch (below(8)) {
      case 0:
      case 1: return x + y;
      case 2: return x - y;
      case 3: return y - x;
      case 4:
      case 5: return x * y;
      case 6: return minimum(x, y);
      default: return x / (square(y) + 1.0F);
    }
  }

  Value image_layer(Value x) {
    const Shape& s = x.shape();
    const std::int64_t h = s[2], w = s[3];
    switch (below(11)) {
      case 0:
      case 1:
      case 2:
      case 3: return convolution(x);
      case 4: return conv_transpose2d(x, operand({s[1], size(5), 2, 2}) * 0.3F, {.stride = {2, 2}});
      case 5:
        if (s[0] * h * w < 4) return x;
        return batch_norm(x, operand({s[1]}), operand({s[1]}), 0.1F).dst;
      case 6: return max_pool2d(x, {.kernel = {std::min<std::int64_t>(h, 2), std::min<std::int64_t>(w, 3)}});
      case 7: return avg_pool2d(x, {.kernel = {std::min<std::int64_t>(h, 3), std::min<std::int64_t>(w, 2)}});
      case 8: return concat({x, operand({s[0], size(4), h, w})}, 1);
      case 9: return reshape(x, {s[0], s[1] * h * w});
      default: return reshape(global_avg_pool2d(x), {s[0], s[1]});
    }
  }

  Value convolution(Value x) {
    const Shape& s = x.shape();
    const bool by_group = s[1] > 1 && below(5) == 0;  // depthwise, or as many groups as divide
    const std::int64_t groups = !by_group ? 1 : s[1] % 2 == 0 && below(2) == 0 ? 2 : s[1];
    const std::int64_t out = groups * one_of(std::array<std::int64_t, 6>{1, 1, 2, 4, 5, 8});
    const std::int64_t kh = std::min(s[2], size(3)), kw = std::min(s[3], size(3));
    const std::int64_t sh = size(3), sw = below(2) == 0 ? sh : size(2);
    const std::array<std::int64_t, 2> padding{below(2) == 0 ? 0 : kh / 2, below(2) == 0 ? 0 : kw / 2};
    const float scale = 1 / std::sqrt(static_cast<float>(s[1] / groups * kh * kw));
    const Value weights = operand({out, s[1] / groups, kh, kw});
    const Value y = conv2d(x, weights, {.stride = {sh, sw}, .padding = padding, .groups = groups});
    return below(2) == 0 ? y * scale : y + operand({out, 1, 1});
  }

  Value matrix_layer(Value x) {
    const Shape& s = x.shape();
    const std::int64_t rows = s[s.rank() - 2], columns = s[s.rank() - 1];
    switch (below(11)) {
      case 0:
      case 1:
      case 2:
      case 3: return product(x);
      case 4: return row_norm(x, s.rank() - 1, 0.1F).dst * operand({columns}) + operand({columns});
      case 5: return softmax(x, below(2) == 0 ? -1 : -2);
      case 6: return log_softmax(x, -1);
      case 7: return s.rank() == 2 ? transpose(x, {1, 0}) : transpose(x, {0, 2, 1});
      case 8: return mean(x, {-1}, true) + x;
      case 9: return rows > 1 ? slice(x, -2, 1, rows) : cumsum(x, -1);
      default: return concat({x, x * number()}, -1);
    }
  }

  Value product(Value x) {
    const Shape& s = x.shape();
    const std::int64_t k = s[s.rank() - 1], n = one_of(std::array<std::int64_t, 6>{1, 3, 8, 16, 17, 32});
    const bool transposed = below(2) == 0;
    const bool batched = s.rank() == 3 && below(2) == 0;
    std::vector<std::int64_t> dims = transposed ? std::vector{n, k} : std::vector{k, n};
    if (batched) dims.insert(dims.begin(), s[0]);
    const Value y = matmul(x, operand(Shape(dims)), false, transposed);
    return below(2) == 0 ? y * (1 / std::sqrt(static_cast<float>(k))) : y + operand({n});
  }

  RandomNetwork& network_;
  PhiloxSequence random_;
  std::uint32_t seed_;
  std::vector<Value> sources_;
};

}  // namespace

RandomNetwork::RandomNetwork(std::uint32_t seed) { Drawing(*this, seed).draw(); }

}  // namespace concord::test
