// Attention on the warpgroup instructions of NVIDIA's Hopper GPUs, against the kernels on row-major fp32.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "concord/opencl/launch/alternatives.hpp"
#include "opencl/context_of.hpp"
#include "opencl/offering_device.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

using enum ops::Causal;

struct AttentionCase {
  std::int64_t queries, keys, heads, key_heads, width;
  AttentionOptions options = {};
  bool mask = false, lengths = false;
};

std::vector<DevicePtr> devices_with_wgmma() {
  std::vector<DevicePtr> found = opencl_devices();
  std::erase_if(found, [](const DevicePtr& device) {
    const std::vector<KernelAlternative> all = context_of(device).alternatives().list();
    return std::ranges::none_of(all, [](const auto& one) { return one.name == opencl::alternative::kAttentionWgmma; });
  });
  if (found.empty()) WARN("skipped: no NVIDIA GPU of the Hopper generation");
  return found;
}

/// In parts of the largest finite number expected; infinite where a number is finite on one side only.
double largest_difference(const Tensor& result, const Tensor& expected) {
  const Array got = to_array(result), right = to_array(expected);
  double error = 0, largest = 1e-30;
  for (std::size_t k = 0; k < got.values.size(); ++k) {
    if (std::isfinite(got.values[k]) != std::isfinite(right.values[k])) return std::numeric_limits<double>::infinity();
    if (!std::isfinite(right.values[k])) continue;
    error = std::max(error, std::abs(got.values[k] - right.values[k]));
    largest = std::max(largest, std::abs(right.values[k]));
  }
  return error / largest;
}

/// q, k, v, the gradient of the result, a mask and lengths.
std::vector<Input> inputs_of(const AttentionCase& c) {
  constexpr std::int64_t kBatch = 2;
  return {{normal({kBatch, c.queries, c.heads, c.width}, 1)},
          {normal({kBatch, c.keys, c.key_heads, c.width}, 2)},
          {normal({kBatch, c.keys, c.key_heads, c.width}, 3)},
          {normal({kBatch, c.queries, c.heads, c.width}, 4)},
          {normal({kBatch, 1, c.queries, c.keys}, 5)},
          {Array({kBatch}, {static_cast<double>(c.keys) - 3, static_cast<double>(c.keys) / 2}), DType::i32}};
}

/// `is_strange`: an input is not finite; the kernels on fp32 split numbers, so that an infinity becomes NaN.
void check_case(const AttentionCase& c, const std::vector<Input>& inputs, bool with_gradients, double tolerance,
                bool is_strange = false) {
  INFO(c.queries << " queries, " << c.keys << " keys, " << c.heads << " heads on " << c.key_heads << ", width "
                 << c.width << ", mask " << c.mask << ", lengths " << c.lengths << ", dropout " << c.options.dropout);
  const auto build = [&](const std::vector<Value>& x) {
    AttentionOptions options = c.options;
    options.layout = ops::HeadLayout::tokens_first;
    if (c.mask) options.mask = x[4];
    if (c.lengths) options.lengths = x[5];
    const Value y = attention(x[0], x[1], x[2], options);
    std::vector<Value> results{y};
    if (with_gradients) {
      for (const Value& g : gradient(sum(y * x[3]), std::vector{x[0], x[1], x[2]})) results.push_back(g);
    }
    return results;
  };
  for (const DevicePtr& device : devices_with_wgmma()) {
    std::vector<Tensor> expected = run(device, inputs, build);
    opencl::OpenClAlternatives& alternatives = context_of(device).alternatives();
    alternatives.prefer(opencl::alternative::kAttentionWgmma);
    for (const Precision precision : {Precision::bf16, Precision::fp16}) {
      INFO(name_of(precision) << " on " << device->info().id);
      std::set<std::string> taken;
      const DevicePtr offering = std::make_shared<OfferingDevice>(device, taken, true, opencl::ChannelAxis::last);
      if (is_strange) {
        alternatives.prefer("");  // few keys: another kernel is planned
        expected = run(offering, inputs, build, {.precision = precision});
        taken.clear();
        alternatives.prefer(opencl::alternative::kAttentionWgmma);
      }
      const std::vector<Tensor> results = run(offering, inputs, build, {.precision = precision});
      const auto kernels = std::ranges::count_if(
          taken, [](const std::string& name) { return name.find(" wgmma ") != std::string::npos; });
      CHECK(kernels == (with_gradients ? 3 : 1));
      for (std::size_t i = 0; i < results.size(); ++i) {
        INFO("result " << i);
        CHECK(largest_difference(results[i], expected[i]) <= tolerance);
      }
    }
    alternatives.prefer("");
  }
}

}  // namespace

TEST_CASE("attention wgmma: one tile and several, a rest of each", "[opencl][tokens][attention]") {
  for (const AttentionCase& c :
       {AttentionCase{1, 70, 1, 1, 64}, AttentionCase{64, 64, 2, 2, 64}, AttentionCase{130, 300, 3, 3, 64},
        AttentionCase{257, 129, 2, 2, 128}, AttentionCase{70, 515, 2, 1, 96}, AttentionCase{200, 200, 4, 2, 40}}) {
    check_case(c, inputs_of(c), true, 0.03);
  }
}

TEST_CASE("attention wgmma: what hides keys, masks and dropout", "[opencl][tokens][attention]") {
  for (const AttentionCase& c :
       {AttentionCase{300, 300, 2, 2, 64, {.causal = first}}, AttentionCase{140, 330, 4, 2, 128, {.causal = last}},
        AttentionCase{200, 260, 2, 2, 128, {}, false, true},
        AttentionCase{200, 200, 2, 2, 64, {.causal = last}, false, true}, AttentionCase{150, 170, 2, 2, 64, {}, true},
        AttentionCase{150, 150, 2, 1, 128, {.causal = first, .dropout = 0.1F}, true, true},
        AttentionCase{260, 260, 2, 2, 64, {.dropout = 0.3F}}}) {
    check_case(c, inputs_of(c), true, 0.03);
  }
}

TEST_CASE("attention wgmma: heads of 256 values", "[opencl][tokens][attention]") {
  for (const ops::Causal causal : {none, first}) {
    const AttentionCase c{150, 150, 2, 2, 256, {.causal = causal}};
    check_case(c, inputs_of(c), false, 0.03);
  }
}

TEST_CASE("attention wgmma: only what sees a value that is not finite gets it", "[opencl][tokens][attention]") {
  // Beyond a length nobody sees it; before it every query does; a later key only later queries do.
  constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  const AttentionCase c{140, 140, 2, 2, 64, {.causal = first}, false, true};
  for (const std::size_t token : {std::size_t{139}, std::size_t{60}}) {
    for (const double strange : {kInfinity, kNan}) {
      std::vector<Input> inputs = inputs_of(c);
      inputs[2].value.values[(token * 2 + 1) * 64 + 5] = strange;
      check_case(c, inputs, true, 0.03, true);
      inputs = inputs_of(c);
      inputs[1].value.values[(token * 2 + 1) * 64 + 5] = strange;
      check_case(c, inputs, true, 0.03, true);
    }
  }
}

}  // namespace concord::test
