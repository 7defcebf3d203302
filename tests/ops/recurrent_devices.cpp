// Recurrent layers on all devices against each other: long sequences, wide layers, fewer bits, results in the place of
// operands.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "concord/device/kernel_alternatives.hpp"
#include "ops/recurrent_layer.hpp"

namespace concord::test {
namespace {

/// All gradients, and y.
std::vector<Tensor> gradients_of(const DevicePtr& device, const Form& form, const std::vector<Input>& inputs,
                                 const CompileOptions& options = {}) {
  return run(
      device, inputs,
      [&](const std::vector<Value>& in) {
        const std::vector<Value> outputs = build(form, in);
        const std::size_t wanted = form.has_lengths ? in.size() - 1 : in.size();
        std::vector<Value> all = gradient(sum(square(outputs[0])) + sum(outputs[1]), std::span(in).first(wanted));
        all.push_back(outputs[0]);
        return all;
      },
      options);
}

/// `tolerance`: of the largest number of a result.
void check_near(const std::vector<Tensor>& results, const std::vector<Tensor>& wanted, double tolerance) {
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Array got = to_array(results[k]), expected = to_array(wanted[k]);
    double largest = 0, most = 0;
    for (std::size_t i = 0; i < got.values.size(); ++i) {
      largest = std::max(largest, std::abs(expected.values[i]));
      most = std::max(most, std::abs(got.values[i] - expected.values[i]));
    }
    INFO("result " << k);
    CHECK(largest > 0.01);
    CHECK(most <= tolerance * largest);
  }
}

/// y and all gradients, on every device as on the first.
void check_devices(const Form& form, const std::vector<Input>& inputs) {
  std::vector<Tensor> first;
  for (const DevicePtr& device : devices()) {
    INFO(ops::name_of(form.cell) << " on " << device->info().id);
    const std::vector<Tensor> results = gradients_of(device, form, inputs);
    if (first.empty()) first = results;
    check_near(results, first, 2e-5);
  }
}

TEST_CASE("gradients through three hundred steps agree on all devices", "[ops][recurrent]") {
  for (const Cell cell : {Cell::lstm, Cell::gru, Cell::rnn_tanh})
    check_devices({cell}, inputs_of({cell}, 300, 3, 8, {}));
}

// So wide that products are cut along k.
TEST_CASE("gradients of wide recurrent layers agree on all devices", "[ops][recurrent]") {
  for (const Cell cell : {Cell::lstm, Cell::gru}) check_devices({cell, true}, inputs_of({cell, true}, 6, 2, 130, {}));
}

bool multiplies_in(const DevicePtr& device, Precision precision) {
  const std::vector<std::string>& known = device->info().precisions;
  return std::ranges::find(known, name_of(precision)) != known.end();
}

/// How many recurrent kernels of the device took all steps in one launch; nothing where it has no such kernel.
std::optional<std::int64_t> persistent_kernels(const DevicePtr& device) {
  constexpr std::string_view kName = "recurrent persistent";
  const KernelAlternatives* const ways = device->alternatives();
  if (ways == nullptr) return {};
  const std::vector<KernelAlternative> list = ways->list();
  if (std::ranges::find(list, kName, &KernelAlternative::name) == list.end()) return {};
  return ways->uses(kName);
}

// On matrix cores one launch takes all steps: one and several chunks of sequences, the last one in part.
TEST_CASE("wide recurrent layers in fewer bits are near those in fp32", "[ops][recurrent]") {
  struct Size {
    std::int64_t steps, batch, hidden;
  };
  for (const Cell cell : {Cell::lstm, Cell::gru, Cell::rnn_tanh}) {  // the slope of relu jumps
    for (const Size& size : {Size{4, 18, 256}, Size{3, 144, 512}, Size{5, 3, 1024}}) {
      const Form form{cell, size.batch == 18, size.batch == 3};
      const std::vector<double> lengths = form.has_lengths ? std::vector<double>{5, 1, 3} : std::vector<double>{};
      const std::vector<Input> inputs = inputs_of(form, size.steps, size.batch, size.hidden, lengths);
      std::vector<Tensor> wanted;
      for (const DevicePtr& device : devices()) {
        for (const Precision precision : {Precision::tf32, Precision::bf16, Precision::fp16}) {
          if (!multiplies_in(device, precision)) continue;
          INFO(ops::name_of(cell) << " N " << size.batch << " H " << size.hidden << " in " << name_of(precision)
                                  << " on " << device->info().id);
          if (wanted.empty()) wanted = gradients_of(device, form, inputs);
          CompileOptions options;
          options.precision = precision;
          const std::optional<std::int64_t> before = persistent_kernels(device);
          check_near(gradients_of(device, form, inputs, options), wanted, precision == Precision::bf16 ? 3e-2 : 4e-3);
          const bool is_wide = precision == Precision::tf32 && size.hidden > 512;
          if (before) CHECK((*persistent_kernels(device) > *before) == !is_wide);
        }
      }
    }
  }
}

/// Results and gradients of a layer whose gates_x and diff_y are computed, so that others may take their place; y is
/// the loss's alone.
std::vector<Tensor> overwriting(const DevicePtr& device, const Form& form, std::int64_t size,
                                const CompileOptions& options) {
  const std::vector<double> lengths = form.has_lengths ? std::vector<double>{6, 1, 4} : std::vector<double>{};
  return run(
      device, inputs_of(form, 6, 3, size, lengths),
      [&](const std::vector<Value>& in) {
        std::vector<Value> computed = in;
        computed[0] = in[0] + in[0];
        const std::vector<Value> outputs = build(form, computed);
        const std::size_t wanted = form.has_lengths ? in.size() - 1 : in.size();
        return gradient(sum(square(outputs[0])) + sum(outputs[1]), std::span(in).first(wanted));
      },
      options);
}

TEST_CASE("results in the place of operands have the bits of results with a place of their own", "[ops][recurrent]") {
  for (const DevicePtr& device : devices()) {
    for (const Cell cell : kCells) {
      for (const auto& [reverse, has_lengths] : {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
        const Form form{cell, reverse, has_lengths};
        INFO(ops::name_of(cell) << (reverse ? " reverse" : "") << (has_lengths ? " lengths" : "") << " on "
                                << device->info().id);
        CompileOptions options, apart;
        apart.retain = Retain::all;
        for (const std::int64_t size : {20, 256}) {
          if (size == 256) {  // as one launch takes all steps on matrix cores
            if (!multiplies_in(device, Precision::bf16)) continue;
            options.precision = apart.precision = Precision::bf16;
          }
          const std::vector<Tensor> got = overwriting(device, form, size, options);
          const std::vector<Tensor> expected = overwriting(device, form, size, apart);
          for (std::size_t k = 0; k < got.size(); ++k) CHECK(difference(got[k], expected[k]).empty());
        }
      }
    }
  }
}

}  // namespace
}  // namespace concord::test
