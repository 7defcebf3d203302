// Products of tokens in one launch with others, and with a formula of their result.
#include <algorithm>

#include "concord/opencl/gemm/channels_last.hpp"
#include "concord/ops/attention.hpp"
#include "concord/ops/matmul.hpp"
#include "concord/ops/operator_group.hpp"
#include "opencl/context_of.hpp"
#include "opencl/formula/tokens_test.hpp"

namespace concord::test {
namespace {

/// Notes which kernels take several operators, and groups products if it is to.
class JoiningDevice final : public ForwardingDevice {
 public:
  explicit JoiningDevice(DevicePtr device, bool groups_all = false)
      : ForwardingDevice(std::move(device)), groups_all_(groups_all) {}
  [[nodiscard]] bool groups_products(std::span<const TensorSpec> inputs, Precision precision) const override {
    return groups_all_ || ForwardingDevice::groups_products(inputs, precision);
  }
  [[nodiscard]] PreparedKernel prepare(const KernelRequest& request) override {
    PreparedKernel prepared = ForwardingDevice::prepare(request);
    if (dynamic_cast<const ops::OperatorGroup*>(request.op) != nullptr) note("group", *prepared.kernel);
    return prepared;
  }
  [[nodiscard]] std::unique_ptr<Kernel> prepare_group(std::span<const KernelRequest> requests) override {
    auto kernel = ForwardingDevice::prepare_group(requests);
    if (kernel && requests[0].op->name().starts_with("matmul")) note("group", *kernel);
    return kernel;
  }
  [[nodiscard]] std::unique_ptr<Kernel> prepare_appended(const KernelRequest& request) override {
    auto kernel = ForwardingDevice::prepare_appended(request);
    if (kernel) note("appended", *kernel);
    return kernel;
  }

  std::vector<std::string> joined;  // "group: products tokens"

 private:
  void note(const std::string& how, const Kernel& kernel) {
    const std::string name = kernel.name(), first = name.substr(0, name.find(' '));
    joined.push_back(how + ": " + first + (name.find(" tokens ") != std::string::npos ? " tokens" : ""));
  }

  bool groups_all_;
};

/// The results in 16 bits beside those in fp32, on devices whose copy engine multiplies tokens.
void check_joined(const std::vector<Input>& inputs, const Build& build, const std::vector<std::string>& joined) {
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    for (const Precision precision : {Precision::bf16, Precision::fp16}) {
      INFO(name_of(precision) << " on " << device->info().id);
      if (!opencl::tma_gemm().device_refusal(context_of(device), precision).empty()) continue;
      const auto noting = std::make_shared<JoiningDevice>(device);
      const std::vector<Tensor> expected = run(device, inputs, build);
      const std::vector<Tensor> results = run(noting, inputs, build, {.precision = precision});
      CHECK(noting->joined == joined);
      for (std::size_t i = 0; i < results.size(); ++i) {
        INFO("result " << i);
        CHECK(largest_error(results[i], expected[i]) <= 0.03);
      }
    }
  }
}

/// Queries, keys and values of tokens x[0] with the weights x[1], x[2], x[3] and, where there are more, biases behind
/// them.
std::vector<Value> three_maps(const std::vector<Value>& x, bool transposed) {
  std::vector<Value> results;
  for (std::size_t i = 0; i < 3; ++i) {
    const Value y = matmul(x[0], x[1 + i], false, transposed);
    results.push_back(x.size() > 4 ? y + x[4 + i] : y);
  }
  return results;
}

}  // namespace

TEST_CASE("tokens: maps of the same tokens are one launch, and so are the gradients of their weights",
          "[opencl][tokens]") {
  // Tiles that need not be cut, and such that are; sizes with a rest of a tile.
  struct Sizes {
    std::int64_t tokens, in, out, heads;
    bool transposed;
  };
  for (const Sizes& s : {Sizes{2048, 768, 768, 12, true}, Sizes{4100, 1032, 520, 13, false}}) {
    const Shape weights = s.transposed ? Shape{s.out, s.in} : Shape{s.in, s.out};
    std::vector<Input> inputs{{normal({2, s.tokens / 2, s.in}, 1)}};
    for (std::uint32_t i = 0; i < 3; ++i) inputs.push_back({normal(weights, 2 + i, 0.05)});
    for (std::uint32_t i = 0; i < 3; ++i) inputs.push_back({normal({s.out}, 5 + i)});
    check_joined(inputs,
                 [&](const std::vector<Value>& x) {
                   std::vector<Value> results = three_maps(x, s.transposed);
                   const auto heads = [&](const Value& y) {
                     return reshape(y, Shape{2, s.tokens / 2, s.heads, s.out / s.heads});
                   };
                   const Value loss = sum(tanh(attention(heads(results[0]), heads(results[1]), heads(results[2]),
                                                         {.layout = ops::HeadLayout::tokens_first})));
                   for (const Value& g : gradient(loss, std::vector{x[1], x[2], x[3], x[0]})) results.push_back(g);
                   return results;
                 },
                 {"group: products tokens", "group: products tokens"});
  }
}

TEST_CASE("tokens: an activation whose gradient needs its argument is computed where that is written",
          "[opencl][tokens]") {
  using Activation = Value (*)(Value);
  for (const Activation activation : {Activation{gelu}, Activation{gelu_tanh}, Activation{silu}}) {
    check_joined(
        {{normal({2, 1030, 768}, 1)}, {normal({1032, 768}, 2, 0.05)}, {normal({1032}, 3)}, {normal({1032}, 4)}},
        [&](const std::vector<Value>& x) {
          const Value y = matmul(x[0], x[1], false, true) + x[2], z = activation(y);
          std::vector<Value> results{y, z};
          for (const Value& g : gradient(sum(z * x[3]), std::vector{x[0], x[1], x[2]})) results.push_back(g);
          return results;
        },
        {"appended: matmul tokens"});
  }
}

TEST_CASE("products of a group run one after the other where no kernel takes them together", "[opencl]") {
  const std::vector<Input> inputs{
      {integers({5, 7}, 1)}, {integers({7, 3}, 2)}, {integers({7, 3}, 3)}, {integers({7, 3}, 4)}};
  const Build build = [](const std::vector<Value>& x) {
    const std::vector<Value> maps = three_maps(x, false);
    return gradient(sum(maps[0] * maps[1]) + sum(maps[2]), std::vector{x[1], x[2], x[3]});
  };
  for (const DevicePtr& device : opencl_devices_with_groups_of(256)) {
    INFO(device->info().id);
    const auto grouping = std::make_shared<JoiningDevice>(device, true);
    const std::vector<Tensor> expected = run(device, inputs, build), results = run(grouping, inputs, build);
    CHECK(grouping->joined == std::vector<std::string>{"group: matmul"});
    for (std::size_t i = 0; i < results.size(); ++i) CHECK(difference(results[i], expected[i]).empty());
  }
}

}  // namespace concord::test
