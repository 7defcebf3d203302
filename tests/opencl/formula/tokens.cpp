// Kernels on tokens in 16 bits, against those on row-major fp32.
#include <algorithm>
#include <cfloat>
#include <set>

#include "concord/opencl/formula/channels_last.hpp"
#include "concord/opencl/gemm/channels_last.hpp"
#include "opencl/context_of.hpp"
#include "opencl/formula/tokens_test.hpp"

namespace concord::test {

TEST_CASE("tokens: pointwise with numbers by channel, by token and single ones", "[opencl][tokens]") {
  check_tokens({{normal({3, 5, 24}, 1)}, {normal({24}, 2)}, {normal({3, 5, 1}, 3)}, {normal({1}, 4)}},
               [](const std::vector<Value>& x) { return std::vector{tanh(x[0] * x[1] + x[2]) * x[3]}; }, 0.01,
               {"pointwise channels-last"});
}

TEST_CASE("tokens: a pointwise operand by sequence and channel makes the result row-major", "[opencl][tokens]") {
  // It has no single stride along the tokens, and does not repeat.
  check_tokens({{normal({3, 5, 24}, 1)}, {normal({3, 1, 24}, 2)}},
               [](const std::vector<Value>& x) { return std::vector{x[0] + x[1]}; }, 0, {});
}

TEST_CASE("tokens: sums by channel, and over the channels", "[opencl][tokens]") {
  check_tokens({{integers({7, 9, 40}, 1)}},
               [](const std::vector<Value>& x) {
                 return std::vector{sum(x[0], {0, 1}), sum(x[0], {2}), sum(x[0], {-1}, true)};
               },
               0, {"reduce_sum channels-last", "reduce_sum tokens"});
}

TEST_CASE("tokens: sums by channel of a formula", "[opencl][tokens]") {
  // By token and channel, by channel, by token, and one number.
  check_tokens(
      {{integers({7, 9, 40}, 1)},
       {integers({7, 9, 40}, 2)},
       {integers({40}, 3)},
       {integers({7, 9, 1}, 4)},
       {integers({1}, 5)}},
      [](const std::vector<Value>& x) {
        return std::vector{sum(x[0] * x[1], {0, 1}), sum(x[2] - x[0] * x[3], {0, 1}), sum(x[4] * x[0], {0, 1}, true)};
      },
      0, {"reduce_sum channels-last"});
}

TEST_CASE("tokens: a formula has its own kernel where that of the sum reads no tokens", "[opencl][tokens]") {
  // The second sum is over other axes. The operand of the first one repeats after nine tokens.
  check_tokens({{integers({7, 9, 40}, 1)}, {integers({1, 9, 40}, 2)}, {integers({40}, 3)}},
               [](const std::vector<Value>& x) {
                 return std::vector{sum(x[0] * x[1], {0, 1}), sum(x[0] * x[2], {0})};
               },
               0, {"pointwise channels-last", "reduce_sum channels-last"});
}

TEST_CASE("tokens: operands that repeat, as positions in sequences do", "[opencl][tokens]") {
  // Of one axis and of two; with an axis of one in between, which repeats too.
  check_tokens({{integers({3, 5, 7, 16}, 1)},
                {integers({7, 16}, 2)},
                {integers({5, 7, 16}, 3)},
                {integers({1, 5, 7, 16}, 4)},
                {integers({5, 1, 16}, 5)}},
               [](const std::vector<Value>& x) {
                 return std::vector{x[0] + x[1], x[0] * x[2] + x[3], sum(x[0] * x[1], {0, 1, 2}), x[0] - x[4]};
               },
               0, {"pointwise channels-last", "reduce_sum channels-last"});
}

TEST_CASE("tokens: channels side by side, and cut again", "[opencl][tokens]") {
  check_tokens({{integers({2, 3, 8}, 1)}, {integers({2, 3, 24}, 2)}, {integers({2, 3, 16}, 3)}},
               [](const std::vector<Value>& x) {
                 const Value all = concat({x[0], x[1], x[2]}, 2);
                 return std::vector{all, slice(all, 2, 8, 32)};
               },
               0, {"concat channels-last"});
}

TEST_CASE("tokens: one behind the other, and some of them", "[opencl][tokens]") {
  check_tokens({{integers({2, 3, 24}, 1)}, {integers({2, 1, 24}, 2)}, {integers({2, 4, 24}, 3)}},
               [](const std::vector<Value>& x) {
                 const Value all = concat({x[1], x[0], x[2]}, 1), both = concat({all, all}, 0);
                 return std::vector{all, slice(all, 1, 1, 4), both, slice(both, 0, 1, 3), slice(all, 1, 0, 1)};
               },
               0, {"concat channels-last", "slice channels-last"});
}

TEST_CASE("tokens: normalisation of rows and its gradient", "[opencl][tokens]") {
  // One block; blocks that no power of two of items divides; more items than a warp.
  for (const std::int64_t channels : {8, 200, 1544}) {
    check_tokens({{normal({3, 7, channels}, 1, 2)}, {normal({3, 7, channels}, 2)}},
                 [](const std::vector<Value>& x) {
                   const RowNormResult centred = row_norm(x[0] + 1.0F, 2);
                   const Value rms = row_norm_rms(x[0], 2).dst;
                   std::vector<Value> results{centred.dst, centred.rstd, centred.mean, rms};
                   for (const Value& y : {centred.dst, rms}) {
                     results.push_back(gradient(sum(y * x[1]), std::vector{x[0]})[0]);
                   }
                   return results;
                 },
                 0.02,
                 {"pointwise channels-last", "row_norm tokens", "row_norm_rms tokens", "row_norm_backward tokens",
                  "row_norm_rms_backward tokens"});
  }
}

TEST_CASE("tokens: the gradient of a layer normalisation has no launch of its own for its products",
          "[opencl][tokens]") {
  for (const std::int64_t channels : {8, 200, 1544}) {
    const Shape shape{3, 7, channels};
    check_tokens({{normal(shape, 1, 2)}, {normal({channels}, 2)}, {normal({channels}, 3)}, {normal(shape, 4)}},
                 [](const std::vector<Value>& x) {
                   std::vector<Value> results;
                   for (const bool centred : {true, false}) {
                     const Value dst = (centred ? row_norm(x[0], 2) : row_norm_rms(x[0], 2)).dst;
                     // x[0] is read by the sum too, so that two gradients meet behind that of the norm.
                     const Value y = dst * x[1] + x[2] + x[0];
                     for (const Value& diff : gradient(sum(y * x[3]), std::span(x).first(3))) results.push_back(diff);
                   }
                   return results;
                 },
                 0.02,
                 {"pointwise channels-last", "row_norm tokens", "row_norm_rms tokens", "row_norm_backward tokens",
                  "row_norm_rms_backward tokens", "reduce_sum channels-last"});
  }
}

TEST_CASE("tokens: what follows the normalisation of rows and its gradient", "[opencl][tokens]") {
  for (const std::int64_t channels : {8, 200, 1544}) {
    const Shape shape{3, 7, channels};
    check_tokens(
        {{normal(shape, 1, 2)}, {normal({channels}, 2)}, {normal({3, 7, 1}, 3)}, {normal(shape, 4)}},
        [](const std::vector<Value>& x) {
          std::vector<Value> results;
          for (const bool centred : {true, false}) {
            const RowNormResult y = centred ? row_norm(x[0], 2) : row_norm_rms(x[0], 2);
            const Value diff =
                x[0].graph().add(std::make_shared<ops::RowNormBackward>(2, centred), {x[3], x[0], y.rstd});
            results.insert(results.end(), {relu(y.dst * x[1] + x[2]) + x[3], y.rstd, diff * x[1] + x[3]});
          }
          return results;
        },
        0.02, {"row_norm tokens", "row_norm_rms tokens", "row_norm_backward tokens", "row_norm_rms_backward tokens"});
  }
}

TEST_CASE("tokens: a view of another shape needs no copy", "[opencl][tokens]") {
  check_tokens({{integers({2, 3, 32}, 1)}},
               [](const std::vector<Value>& x) {
                 return std::vector{reshape(x[0] * 2.0F, Shape{6, 4, 8}) + 1.0F};
               },
               0, {"pointwise channels-last"});
}

TEST_CASE("tokens: a product of two is summed by token in one launch", "[opencl][tokens]") {
  check_tokens({{integers({3, 70, 4, 40}, 1)}, {integers({3, 70, 4, 40}, 2)}, {integers({3, 70, 4, 1}, 3)}},
               [](const std::vector<Value>& x) {
                 return std::vector{sum(x[0] * x[1], {-1}, true), sum(x[0] * x[2], {3}), sum(x[0], {3})};
               },
               0, {"reduce_sum tokens"});
}

TEST_CASE("tokens: the gradient of logits takes their place", "[opencl][tokens]") {
  // A block an item, and more than two.
  for (const std::int64_t words : {24, 4136}) {
    Array classes({6});
    for (std::size_t i = 0; i < 6; ++i)
      classes.values[i] = static_cast<double>(static_cast<std::int64_t>(i) * 5 % words);
    check_tokens({{normal({6, words}, 1, 3)}, {classes, DType::i32}},
                 [](const std::vector<Value>& x) {
                   const Value losses = cross_entropy_rows(x[0] * 0.5F, x[1]);
                   return std::vector{losses, gradient(sum(losses), std::vector{x[0]})[0]};
                 },
                 0.02, {"cross_entropy+gradient tokens", "pointwise channels-last"});
  }
}

TEST_CASE("tokens: losses of logits and their gradients", "[opencl][tokens]") {
  Array classes({40});
  for (std::size_t i = 0; i < classes.values.size(); ++i) classes.values[i] = static_cast<double>(i * 7 % 24);
  classes.values[5] = -1;  // no class: a loss of NaN, and with a gradient of 0 nothing
  for (const float smoothing : {0.0F, 0.1F}) {
    check_tokens({{normal({40, 24}, 1, 3)}, {classes, DType::i32}},
                 [&](const std::vector<Value>& x) {
                   const Value losses = cross_entropy_rows(x[0], x[1], smoothing);
                   const Value counted = slice(losses, 0, 6, 40);
                   return std::vector{counted, gradient(sum(counted), std::vector{x[0]})[0]};
                 },
                 0.02, {"cross_entropy+gradient tokens"});
  }
}

namespace {

bool has_matrix_cores(const DevicePtr& device) {
  const std::vector<std::string>& precisions = device->info().precisions;
  return std::ranges::find(precisions, "bf16") != precisions.end();
}

/// The kernels that take tokens when a device chooses by itself, and the results beside fp32.
void check_chosen(const std::vector<Input>& inputs, const Build& build, double tolerance,
                  const std::set<std::string>& kernels) {
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    if (!has_matrix_cores(device)) continue;
    const std::vector<Tensor> expected = run(device, inputs, build);
    for (const Precision precision : {Precision::bf16, Precision::fp16}) {
      INFO(name_of(precision) << " on " << device->info().id);
      std::set<std::string> taken;
      const std::vector<Tensor> results =
          run(std::make_shared<OfferingDevice>(device, taken, false), inputs, build, {.precision = precision});
      std::set<std::string> families;  // without tiles
      for (const std::string& name : taken) {
        const std::string family = name.substr(0, name.find(' '));
        families.insert(family == "products" ? "matmul" : family);  // of several matrix multiplications
      }
      const bool has_tokens = opencl::tma_gemm().device_refusal(context_of(device), precision).empty();
      CHECK(families == (has_tokens ? kernels : std::set<std::string>{}));
      for (std::size_t i = 0; i < results.size(); ++i) {
        INFO("result " << i);
        CHECK(largest_error(results[i], expected[i]) <= tolerance);
      }
    }
  }
}

}  // namespace

TEST_CASE("tokens: linear maps and their gradients", "[opencl][tokens]") {
  struct Sizes {
    std::int64_t tokens, in, out;
    bool transposed;
  };
  // More tokens than a tile has rows, and no multiple of it; k with a rest of a tile.
  for (const Sizes& s : {Sizes{2048, 768, 768, true}, Sizes{1000, 1032, 1288, false}, Sizes{4100, 520, 520, true}}) {
    const Shape weights = s.transposed ? Shape{s.out, s.in} : Shape{s.in, s.out};
    check_chosen({{normal({2, s.tokens / 2, s.in}, 1)},
                  {normal(weights, 2, 0.05)},
                  {normal({s.out}, 3)},
                  {normal({2, s.tokens / 2, s.out}, 4)}},
                 [&](const std::vector<Value>& x) {
                   const Value y = tanh(matmul(x[0], x[1], false, s.transposed) + x[2]) + x[3];
                   std::vector<Value> results{y};
                   for (const Value& g : gradient(sum(y * x[3]), std::vector{x[0], x[1], x[2]})) results.push_back(g);
                   return results;
                 },
                 0.03, {"matmul", "pointwise", "reduce_sum"});
  }
}

TEST_CASE("tokens: tensors that are added to a product", "[opencl][tokens]") {
  // One work for each work-group, several, and tiles that are cut; rests of tiles. One operand is columns of a wider
  // one.
  struct Sizes {
    std::int64_t tokens, in, out;
  };
  for (const Sizes& s : {Sizes{2050, 768, 776}, Sizes{9000, 520, 776}, Sizes{520, 8192, 264}}) {
    for (std::size_t operands = 1; operands <= 4; ++operands) {
      INFO(s.tokens << " tokens, " << operands << " operands");
      std::vector<Input> inputs{{normal({s.tokens, s.in}, 1)}, {normal({s.out, s.in}, 2, 0.05)}, {normal({s.out}, 3)}};
      for (std::size_t i = 0; i < operands; ++i) {
        const Shape shape = i == 1 ? Shape{2 * s.out, s.in} : Shape{s.tokens, s.out};
        inputs.push_back({normal(shape, static_cast<std::uint32_t>(4 + i), i == 1 ? 0.05 : 2)});
      }
      check_chosen(inputs,
                   [&](const std::vector<Value>& x) {
                     Value y = matmul(x[0], x[1], false, true) + x[2];
                     for (std::size_t i = 3; i < x.size(); ++i) {
                       const Value more = i == 4 ? slice(matmul(x[0], x[i], false, true), 1, s.out, 2 * s.out) : x[i];
                       y = i % 2 == 0 ? y * more : y + more;
                     }
                     return std::vector{y};
                   },
                   0.02, {"matmul"});
    }
  }
}

namespace {

enum class Mask : std::uint8_t { none, normal, far };

/// `far`: rows of −1e9 alone, rows that begin with the least number, rows of −1e30 alone and rows of 0. What lies
/// beyond the last row follows one of 0.
Array mask_of(Mask kind, std::int64_t queries, std::int64_t keys) {
  if (kind != Mask::far) return normal({1, 1, queries, keys}, 7);
  Array mask({1, 1, queries, keys});
  for (std::int64_t t = 0; t < queries; ++t) {
    for (std::int64_t s = 0; s < keys; ++s) {
      const double rows[] = {-1e9, s < keys / 2 ? -static_cast<double>(FLT_MAX) : 0, -1e30, 0};
      mask.at({0, 0, t, s}) = static_cast<float>(rows[t % 4]);
    }
  }
  return mask;
}

}  // namespace

TEST_CASE("tokens: attention and its gradients", "[opencl][tokens][attention]") {
  struct Form {
    std::int64_t queries, keys, heads, key_heads, width;
    ops::Causal causal;
    Mask mask;
    float dropout;
  };
  using enum ops::Causal;
  for (const Form& f :
       {Form{200, 200, 4, 4, 64, none, Mask::none, 0}, Form{130, 130, 2, 2, 64, first, Mask::none, 0},
        Form{70, 150, 4, 2, 128, last, Mask::none, 0}, Form{96, 96, 2, 2, 96, first, Mask::normal, 0},
        Form{200, 300, 2, 2, 64, none, Mask::far, 0}, Form{64, 64, 2, 2, 32, none, Mask::far, 0},
        Form{100, 100, 2, 2, 32, none, Mask::none, 0.1F}, Form{64, 64, 2, 1, 40, first, Mask::none, 0.2F}}) {
    INFO(f.queries << " queries, " << f.keys << " keys, width " << f.width);
    // Linear maps before and behind make the vectors tokens: each has at least 1e9 multiplications.
    const std::int64_t in = 1024, query_width = f.heads * f.width, key_width = f.key_heads * f.width;
    const std::int64_t batch = 1'100'000'000 / (in * std::min(f.queries * query_width, f.keys * key_width)) + 1;
    check_chosen(
        {{normal({batch, f.queries, in}, 1)},
         {normal({batch, f.keys, in}, 2)},
         {normal({in, query_width}, 3, 0.03)},
         {normal({in, key_width}, 4, 0.03)},
         {normal({in, key_width}, 5, 0.03)},
         {normal({batch, f.queries, query_width}, 6)},
         {mask_of(f.mask, f.queries, f.keys)}},
        [&](const std::vector<Value>& x) {
          const auto heads = [&](const Value& y, std::int64_t count) {
            return reshape(y, Shape{y.shape()[0], y.shape()[1], count, f.width});
          };
          AttentionOptions options{.causal = f.causal, .layout = ops::HeadLayout::tokens_first, .dropout = f.dropout};
          if (f.mask != Mask::none) options.mask = x[6];
          const Value q = heads(matmul(x[0], x[2]), f.heads), k = heads(matmul(x[1], x[3]), f.key_heads);
          const Value v = heads(matmul(x[1], x[4]), f.key_heads);
          const Value y = reshape(attention(q, k, v, options), x[5].shape());
          std::vector<Value> results{y};
          for (const Value& g : gradient(sum(y * x[5]), std::vector{x[2], x[3], x[4]})) results.push_back(g);
          return results;
        },
        0.04, {"matmul", "attention", "attention_backward_query", "attention_backward_key_value", "reduce_sum"});
  }
}

}  // namespace concord::test
