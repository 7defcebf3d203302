// The tuner: every tiling computes right, a kernel that does not is refused, and the table says what was best.
#include "concord/device/tuner.hpp"

#include <set>

#include "concord/core/debug_options.hpp"
#include "concord/opencl/conv/row_unrolled.hpp"
#include "concord/opencl/device.hpp"
#include "concord/opencl/gemm/gemm.hpp"
#include "concord/opencl/gemm/implementation.hpp"
#include "concord/opencl/gemm/tuning/table.hpp"
#include "concord/opencl/gemm/tuning/trial.hpp"
#include "files.hpp"
#include "opencl/context_of.hpp"
#include "opencl/opencl_test.hpp"

namespace concord::test {
namespace {

/// Products of every form: of matrices with epilogues, of the three passes of a convolution.
std::vector<opencl::Gemm> products_on(const DevicePtr& device) {
  const DebugOption way("conv", "phases");  // of the data gradient
  std::vector<opencl::Gemm> list;
  opencl::Tuning& tuning = *context_of(device).tuning();
  tuning.listener = [&](const opencl::Gemm& gemm) { list.push_back(gemm); };
  Graph graph;
  const Value a = graph.input("a", {DType::f32, {70, 90}}), b = graph.input("b", {DType::f32, {90, 33}});
  const Value bias = graph.input("bias", {DType::f32, {33}});
  const Value image = graph.input("image", {DType::f32, {3, 12, 9, 8}});
  const Value weights = graph.input("weights", {DType::f32, {8, 12, 3, 3}});
  const Value dst = conv2d(image, weights, {.stride = {2, 2}, .padding = {1, 1}});
  std::vector<Value> results = gradient(sum(dst * dst), std::vector{image, weights});
  results.push_back(sigmoid(matmul(a, b) + bias));
  results.push_back(matmul(a, a, true));
  static_cast<void>(compile(graph, results, std::make_shared<Variables>(device, 1)));
  tuning.listener = {};
  return list;
}

/// A folder with the kernels, one of them changed.
void write_kernels(const std::filesystem::path& folder, const std::string& name, std::string_view from,
                   std::string_view to) {
  std::filesystem::copy(folder_of_kernels(), folder, std::filesystem::copy_options::recursive);
  std::string text = content_of(folder / name);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  write_file(folder / name, text);
}

/// gemm/tiled.cl with the last row of every product wrong.
void plant_wrong_last_row(const std::filesystem::path& folder) {
  write_kernels(folder, "gemm/tiled.cl", "  EACH(j, N_VECTORS) {\n    const uint n_first",
                "  EACH(i, THREAD_M) EACH(j, THREAD_N) "
                "if (m_begin + m_item + (i / 4) * M_DISTANCE + i % 4 + 1 == m_size) sums[i][j] += 9.0f;\n"
                "  EACH(j, N_VECTORS) {\n    const uint n_first");
}

std::vector<TunableProduct> product_of(const DevicePtr& device, std::int64_t m, std::int64_t n, std::int64_t k) {
  Graph graph;
  const Value c = matmul(graph.input("a", {DType::f32, {m, k}}), graph.input("b", {DType::f32, {k, n}}));
  return device->tuner()->products_of(
      [&] { static_cast<void>(compile(graph, std::vector{c}, std::make_shared<Variables>(device, 1))); });
}

}  // namespace

TEST_CASE("every implementation and tiling gives a product that the plain kernel gives", "[opencl][tuning]") {
  for (const DevicePtr& device : opencl_devices()) {
    opencl::Context& context = context_of(device);
    std::set<std::string> seen;
    for (const opencl::Gemm& gemm : products_on(device)) {
      if (!seen.insert(tuning_key(gemm)).second) continue;
      opencl::ProductTrial trial(*device, context, gemm);
      for (const opencl::GemmImplementation* one : opencl::gemm_implementations()) {
        std::vector<opencl::GemmChoice> choices{{std::string(one->name), std::nullopt}};
        // PoCL takes half a second to build one of these.
        const bool is_slow = context.limits().is_cpu && one->name == "tiled" && gemm.b.is_patch;
        for (const opencl::GemmTiling& tiling :
             is_slow ? std::vector<opencl::GemmTiling>{} : one->tilings(context, gemm)) {
          choices.push_back({std::string(one->name), tiling});
        }
        for (const opencl::GemmChoice& choice : choices) {
          const std::unique_ptr<Kernel> kernel = prepare_choice(context, trial.gemm(), choice, "test");
          if (!kernel) continue;
          INFO(tuning_key(gemm) << " by " << kernel->name() << " on " << device->info().id);
          const opencl::ProductTrial::Outcome outcome = trial.run(*kernel, 0);
          CHECK(outcome.fault.empty());
          CHECK(outcome.seconds > 0);
        }
      }
    }
    CHECK(seen.size() >= 5);
  }
}

TEST_CASE("every tiling that a tuner tries of a short k is accepted and another kernel", "[opencl][tuning]") {
  for (const DevicePtr& device : opencl_devices()) {
    opencl::Context& context = context_of(device);
    for (const char* name : {"panel", "tiled"}) {
      const opencl::GemmImplementation* const one = opencl::find_gemm_implementation(name);
      for (const std::int64_t k : {5, 100}) {
        const opencl::Gemm gemm = opencl::dense_gemm(2, 3, k);
        std::set<std::string> names;
        for (const opencl::GemmTiling& tiling : one->tilings(context, gemm)) {
          INFO(name << " " << tiling.tile << " in " << tiling.parts << " of k = " << k);
          const std::unique_ptr<Kernel> kernel = one->prepare_tiling(context, gemm, tiling, "test");
          REQUIRE(kernel != nullptr);
          CHECK(names.insert(kernel->name()).second);
        }
      }
    }
  }
}

TEST_CASE("a table cannot ask for more partial sums than memory can hold", "[opencl][tuning]") {
  const opencl::Gemm gemm = opencl::dense_gemm(1 << 14, 1 << 14, 4096);  // 1 GiB a part
  for (const DevicePtr& device : opencl_devices()) {
    for (const char* name : {"panel", "tiled", "sliced"}) {
      INFO(name);
      const opencl::GemmImplementation* const one = opencl::find_gemm_implementation(name);
      for (const opencl::GemmTiling& tiling : one->tilings(context_of(device), gemm)) {
        CHECK(one->prepare_tiling(context_of(device), gemm, {tiling.tile, 60}, "test") == nullptr);
      }
    }
  }
}

TEST_CASE("a product of one row that is stored as a column is computed right", "[opencl][tuning]") {
  for (const DevicePtr& device : opencl_devices()) {
    opencl::Context& context = context_of(device);
    const opencl::Gemm gemm = opencl::dense_gemm(1, 7, 5, false);  // a stride of 1 along both
    opencl::ProductTrial trial(*device, context, gemm);
    for (const char* name : {"tiled", "clblast"}) {
      const auto kernel = prepare_choice(context, trial.gemm(), {name, std::nullopt}, "test");
      if (!kernel) continue;  // clblast on devices with lowered limits
      INFO(kernel->name() << " on " << device->info().id);
      CHECK(trial.run(*kernel, 0).fault.empty());
    }
  }
}

TEST_CASE("a trial's operands are as large as the launches before a product read", "[opencl][tuning]") {
  const ops::ConvSizes sizes = ops::conv_sizes({4, 7, 64, 64}, {8, 7, 1, 1}, {.stride = {1, 2, 2}});
  const std::int64_t image = 4 * 7 * 64 * 64;  // unrolled, it has half the columns of 8 channels
  for (const DevicePtr& device : opencl_devices()) {
    opencl::Context& context = context_of(device);
    CHECK(opencl::row_unrolled_forward_gemm(context, sizes, Precision::bf16, {}).largest == image);
    CHECK(opencl::row_unrolled_backward_weights_gemm(context, sizes, Precision::bf16).gemm.largest == image);
  }
}

TEST_CASE("the tuner finds the best kernel of a product and another device obeys it", "[opencl][tuning]") {
  for (const DevicePtr& known : opencl_devices()) {
    const TemporaryFolder folder;
    const Setting setting("CONCORD_TUNING_DIR", folder.path().string());
    const DevicePtr device = Device::open(known->info().id);
    const std::vector<TunableProduct> products = product_of(device, 61, 44, 52);
    REQUIRE(products.size() == 1);
    CHECK(products.front().uses == 1);
    CHECK(products.front().flops == 2.0 * 61 * 44 * 52);
    CHECK_FALSE(products.front().is_known);
    const TunedProduct result = device->tuner()->tune(products.front().key, 60);
    CHECK(result.is_taken);
    CHECK(result.refused.empty());
    CHECK(result.tried == result.candidates);
    // Kernels that are not made for the device may leave a way without tilings the fastest by far.
    CHECK(result.candidates > (debug_option("kernels") ? 1U : 3U));
    CHECK(result.best_seconds > 0);
    CHECK(result.best_seconds <= result.planned_seconds);
    const std::filesystem::path file = device->tuner()->store();
    CHECK(file.parent_path() == folder.path());
    CHECK(product_of(Device::open(known->info().id), 61, 44, 52).front().is_known);
    CHECK_FALSE(product_of(Device::open(known->info().id), 61, 44, 51).front().is_known);

    // A second product joins the first in the file, and one without time for a choice is not taken.
    const TunableProduct other = product_of(device, 20, 44, 52).front();
    CHECK_FALSE(device->tuner()->tune(other.key, 0).is_taken);
    CHECK(device->tuner()->tune(other.key, 60).is_taken);
    CHECK(device->tuner()->store() == file);
    const DevicePtr third = Device::open(known->info().id);
    CHECK(product_of(third, 61, 44, 52).front().is_known);
    CHECK(product_of(third, 20, 44, 52).front().is_known);
    CHECK_THAT(message_of<ArgumentError>([&] { static_cast<void>(device->tuner()->tune("no product", 1)); }),
               contains("no product"));
  }
}

TEST_CASE("a kernel that computes wrong is refused, in the last row too and where rows are sampled",
          "[opencl][tuning]") {
  for (const DevicePtr& known : opencl_devices()) {
    const TemporaryFolder folder, tables;
    const std::filesystem::path kernels = folder / "kernels";
    plant_wrong_last_row(kernels);
    const DebugOption planted("kernel_dir", kernels.string());
    const Setting setting("CONCORD_TUNING_DIR", tables.path().string());
    const DebugOption kind("kernels", "gpu");
    const DevicePtr device = Device::open(known->info().id);
    const TunedProduct result = device->tuner()->tune(product_of(device, 61, 44, 52).front().key, 60);
    REQUIRE_FALSE(result.refused.empty());
    for (const std::string& refused : result.refused) {
      CHECK_THAT(refused, contains("tiled") && contains("44 of 2684 numbers are wrong"));
    }
    CHECK_THAT(result.best, !contains("tiled"));
    CHECK(result.is_taken);
  }
}

TEST_CASE("a wrong last row is found where a large product is checked by samples", "[opencl][tuning]") {
  for (const DevicePtr& known : opencl_devices()) {
    const TemporaryFolder folder;
    plant_wrong_last_row(folder / "kernels");
    const DebugOption planted("kernel_dir", (folder / "kernels").string());
    const DevicePtr device = Device::open(known->info().id);
    opencl::Context& context = context_of(device);
    const opencl::Gemm gemm = opencl::dense_gemm(1000, 100, 7000);
    opencl::ProductTrial trial(*device, context, gemm);
    CHECK(trial.is_whole() == !context.limits().is_cpu);
    const auto run = [&](std::string implementation) {
      return trial.run(*prepare_choice(context, trial.gemm(), {std::move(implementation), std::nullopt}, "test"), 0);
    };
    CHECK_THAT(run("tiled").fault, contains("100 of 100000 numbers are wrong"));
    if (context.limits().is_cpu) CHECK(run("panel").fault.empty());
  }
}

}  // namespace concord::test
