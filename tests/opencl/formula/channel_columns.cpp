// Slices of tokens as columns, and who reads them.
#include "concord/opencl/formula/channel_columns.hpp"

#include "concord/opencl/ops/attention.hpp"
#include "opencl/formula/tokens_test.hpp"

namespace concord::test {

TEST_CASE("tokens: a slice is columns of what it is cut from", "[opencl][tokens]") {
  // Each kind of reader: a kernel that wants tokens of its own, one that wants fp32, a view, a slice of the slice.
  check_tokens({{integers({2, 3, 64}, 1)}},
               [](const std::vector<Value>& x) {
                 const Value all = x[0] * 2.0F, part = slice(all, 2, 16, 48);
                 return std::vector{part + 1.0F, cumsum(part, 1), reshape(part, Shape{2, 3, 4, 8}) + 1.0F,
                                    slice(part, 2, 8, 24) + 1.0F, slice(all, 1, 1, 3) + 1.0F};
               },
               0, {"pointwise channels-last", "slice channels-last"});
}

TEST_CASE("tokens: attention reads columns where the heads of a token are neighbours", "[opencl][tokens]") {
  const auto columns = [](const Shape& shape, opencl::ChannelAxis axis, std::int64_t count) {
    return opencl::ChannelColumns(opencl::channels_last({DType::f32, shape}, DType::bf16, axis), count, 3 * count, 0);
  };
  const auto sizes = [](const Shape& queries, const Shape& keys, ops::HeadLayout layout) {
    const std::vector<TensorSpec> inputs{{DType::f32, queries}, {DType::f32, keys}, {DType::f32, keys}};
    return ops::attention_sizes({.layout = layout}, inputs, 3);
  };
  const Shape queries{2, 5, 4, 16}, keys{2, 5, 2, 16};
  const ops::AttentionSizes by_tokens = sizes(queries, keys, ops::HeadLayout::tokens_first);
  using opencl::attention_reads, opencl::ChannelAxis;
  CHECK(attention_reads(by_tokens, 0, columns(queries, ChannelAxis::last, 64)));
  CHECK(attention_reads(by_tokens, 1, columns(keys, ChannelAxis::last, 32)));
  CHECK_FALSE(attention_reads(by_tokens, 0, columns(queries, ChannelAxis::last, 16)));  // of each head
  CHECK_FALSE(attention_reads(by_tokens, 0, columns({2, 64, 4, 16}, ChannelAxis::second, 64)));
  const ops::AttentionSizes by_heads = sizes({2, 4, 5, 16}, {2, 2, 5, 16}, ops::HeadLayout::heads_first);
  CHECK_FALSE(attention_reads(by_heads, 0, columns({2, 4, 5, 16}, ChannelAxis::last, 16)));
}

TEST_CASE("tokens: attention of other columns, and with a gradient that is columns", "[opencl][tokens]") {
  constexpr std::int64_t kTokens = 70, kHeads = 2, kWidth = 64;
  const auto attended = [](const Value& packed, ops::HeadLayout layout) {
    const auto part = [&](std::int64_t j) { return slice(packed * 1.0F, 3, j * kWidth, (j + 1) * kWidth); };
    return attention(part(0), part(1), part(2), {.causal = ops::Causal::first, .layout = layout});
  };
  struct Form {
    Shape packed, seed;
    ops::HeadLayout layout;
    bool is_beside;  // another branch, so that the gradient is cut from that of both
  };
  const Shape by_tokens{2, kTokens, kHeads, 3 * kWidth}, by_heads{2, kHeads, kTokens, 3 * kWidth};
  for (const Form& one : {Form{by_tokens, {2, kTokens, kHeads, kWidth}, ops::HeadLayout::tokens_first, false},
                          Form{by_heads, {2, kHeads, kTokens, kWidth}, ops::HeadLayout::heads_first, false},
                          Form{by_tokens, {2, kTokens, kHeads * kWidth + 64}, ops::HeadLayout::tokens_first, true}}) {
    const Build build = [&](const std::vector<Value>& x) {
      Value y = attended(x[0], one.layout);
      if (one.is_beside) {
        y = concat({reshape(y, Shape{2, kTokens, kHeads * kWidth}), slice(x[1], 2, 0, 64) * 2.0F}, 2) * 1.0F;
      }
      return std::vector{y, gradient(sum(y * x[1]), std::vector{x[0]})[0]};
    };
    const std::vector<Input> inputs{{normal(one.packed, 1)}, {normal(one.seed, 2)}};
    for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
      INFO(one.packed.str() << ", " << one.seed.str() << " on " << device->info().id);
      const std::vector<Tensor> expected = run(device, inputs, build);
      std::set<std::string> taken;
      const DevicePtr offering = std::make_shared<OfferingDevice>(device, taken, true, opencl::ChannelAxis::last);
      const std::vector<Tensor> results = run(offering, inputs, build, {.precision = Precision::bf16});
      for (std::size_t i = 0; i < results.size(); ++i) CHECK(largest_error(results[i], expected[i]) <= 0.03);
    }
  }
}

TEST_CASE("tokens: attention reads queries, keys and values as columns of one product", "[opencl][tokens]") {
  // Heads of both kernels on matrix cores; a padded tile; keys of fewer heads.
  struct Heads {
    std::int64_t tokens, heads, key_heads, width;
  };
  for (const Heads h : {Heads{70, 2, 2, 64}, Heads{300, 4, 2, 64}, Heads{50, 2, 1, 32}}) {
    const std::int64_t queries = h.heads * h.width, keys = h.key_heads * h.width;
    const Build build = [&](const std::vector<Value>& x) {
      const auto heads = [&](std::int64_t begin, std::int64_t count) {
        return reshape(slice(x[0] * 1.0F, 2, begin, begin + count * h.width), Shape{2, h.tokens, count, h.width});
      };
      const Value y = attention(heads(0, h.heads), heads(queries, h.key_heads), heads(queries + keys, h.key_heads),
                                {.causal = ops::Causal::first, .layout = ops::HeadLayout::tokens_first});
      return std::vector{y, gradient(sum(y * x[1]), std::vector{x[0]})[0]};
    };
    const std::vector<Input> inputs{{normal({2, h.tokens, queries + 2 * keys}, 1)},
                                    {normal({2, h.tokens, h.heads, h.width}, 2)}};
    for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
      const std::vector<Tensor> expected = run(device, inputs, build);
      for (const Precision precision : {Precision::bf16, Precision::fp16}) {
        INFO(name_of(precision) << " on " << device->info().id << ", " << h.tokens << " tokens");
        std::set<std::string> taken;
        const DevicePtr offering = std::make_shared<OfferingDevice>(device, taken, true, opencl::ChannelAxis::last);
        const std::vector<Tensor> results = run(offering, inputs, build, {.precision = precision});
        for (std::size_t i = 0; i < results.size(); ++i) CHECK(largest_error(results[i], expected[i]) <= 0.03);
      }
    }
  }
}

}  // namespace concord::test
