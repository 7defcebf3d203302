// The ways to compute of a device: preferred and marked, kept in the quirk file, and found wrong by the doctor's check.
#include <nlohmann/json.hpp>

#include "concord/compare/cases/variant_check.hpp"
#include "concord/device/variants.hpp"
#include "files.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

constexpr const char* kTiled = "product tiled";

/// A device with kernels for GPUs whose quirk file is in a folder of its own.
class Marked {
 public:
  explicit Marked(const DevicePtr& like) : id_(like->info().id), cache_("CONCORD_CACHE_DIR", folder_.path().string()) {}
  [[nodiscard]] DevicePtr open() const { return Device::open(id_); }

 private:
  TemporaryFolder folder_;
  std::string id_;
  Setting cache_;
  DebugOption kernels_{"kernels", "gpu"};
};

/// What the library said while `action` ran.
std::string warnings_of(const std::function<void()>& action) {
  std::string text;
  set_log([&](LogLevel, std::string_view line) { text += std::string(line) + "\n"; }, LogLevel::warning);
  action();
  set_log({});
  return text;
}

std::string kernel_of_product(const DevicePtr& device) {
  Graph graph;
  const Value y = matmul(graph.input("a", {DType::f32, {40, 50}}), graph.input("b", {DType::f32, {50, 60}}));
  Program program = compile(graph, std::vector{y}, std::make_shared<Variables>(device, 1));
  return program.run_traced().front().kernel;
}

}  // namespace

TEST_CASE("a variant is taken where it is preferred, and not where it is marked", "[opencl][variants]") {
  for (const DevicePtr& device : opencl_devices()) {
    const Marked held(device);
    const DevicePtr opened = held.open();
    Variants& variants = *opened->variants();
    variants.prefer(kTiled);
    CHECK_THAT(kernel_of_product(opened), contains("tiled"));
    CHECK(variants.uses(kTiled) == 1);
    variants.mark(kTiled, "a test says so");
    CHECK_THAT(kernel_of_product(opened), !contains("tiled"));
    const auto listed = variants.list();
    const auto found = std::ranges::find(listed, kTiled, &Variant::name);
    REQUIRE(found != listed.end());
    CHECK(found->quirk == "a test says so");
    CHECK(found->family == "product");
    variants.mark(kTiled, "");
    CHECK_THAT(kernel_of_product(opened), contains("tiled"));
    CHECK_THROWS_AS(variants.prefer("product magic"), ArgumentError);
    CHECK_THROWS_AS(variants.mark("magic", "no"), ArgumentError);
  }
}

TEST_CASE("marks are kept for later devices, told, and forgotten", "[opencl][variants]") {
  for (const DevicePtr& device : opencl_devices()) {
    const Marked held(device);
    const DevicePtr first = held.open();
    CHECK_FALSE(std::filesystem::exists(first->variants()->file()));
    first->variants()->mark(kTiled, "a test says so");
    first->variants()->store();
    const auto json = nlohmann::json::parse(content_of(first->variants()->file()));
    CHECK(json.at("driver") == device->info().driver);
    CHECK(json.at("quirks").at(kTiled) == "a test says so");

    DevicePtr second;
    const std::string said = warnings_of([&] { second = held.open(); });
    CHECK_THAT(said, contains("\"product tiled\" is disabled: a test says so") && contains("doctor --forget") &&
                         contains(first->variants()->file().string()));
    CHECK_THAT(kernel_of_product(second), !contains("tiled"));
    CHECK(second->variants()->forget() == 1);
    CHECK_FALSE(std::filesystem::exists(second->variants()->file()));
    CHECK(second->variants()->forget() == 0);
    CHECK(warnings_of([&] { second = held.open(); }).empty());
    CHECK_THAT(kernel_of_product(second), contains("tiled"));
  }
}

TEST_CASE("a quirk file that is damaged, or another driver's, is told and not obeyed", "[opencl][variants]") {
  for (const DevicePtr& device : opencl_devices()) {
    const Marked held(device);
    const DevicePtr opened = held.open();
    const std::filesystem::path file = opened->variants()->file();
    opened->variants()->mark(kTiled, "a test says so");
    opened->variants()->store();
    auto other = nlohmann::json::parse(content_of(file));
    other["driver"] = "0.0";
    for (const std::string& text : {std::string("{\"format\":"), other.dump(), std::string("[]"), std::string()}) {
      INFO(text);
      write_file(file, text);
      DevicePtr later;
      CHECK_THAT(warnings_of([&] { later = held.open(); }),
                 contains(file.string() + " is ignored") && !contains("json.exception"));
      CHECK_THAT(kernel_of_product(later), contains("tiled"));
    }
  }
}

TEST_CASE("the check of a variant marks a kernel with a planted bug, and the library does without it",
          "[opencl][variants]") {
  const TemporaryFolder folder;
  const auto sources = folder_of_kernels();
  std::filesystem::copy(sources, folder / "kernels", std::filesystem::copy_options::recursive);
  const std::string good = content_of(sources / "gemm/tiled.cl");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    REQUIRE(bad.find(from) != std::string::npos);
    return bad.replace(bad.find(from), from.size(), to);
  };
  const std::string bad = with("float left[THREAD_M];", "float left[THREAD_M]; sums[0][0] += 0.01f;");
  // Wrong only where a bias is added before the result is written.
  const std::string bad_epilogue = with("batch, m, outer, inner + 1)", "batch, m, outer, inner)");
  const DebugOption kernels("kernel_dir", (folder / "kernels").string());
  for (const DevicePtr& device : opencl_devices()) {
    const Marked held(device);
    for (const std::string& broken : {bad, bad_epilogue, "this does not compile\n" + good}) {
      write_file(folder / "kernels/gemm/tiled.cl", broken);
      const DevicePtr opened = held.open();
      Variants& variants = *opened->variants();
      const VariantResult found = check_variant(opened, variants, kTiled);
      CHECK(found.was_taken);
      CHECK_THAT(found.variant.quirk, contains(broken == bad            ? "matmul by the kernel"
                                               : broken == bad_epilogue ? "matmul+add by the kernel"
                                                                        : "building a kernel"));
      CHECK(found.unexplained.empty());
      CHECK_THAT(kernel_of_product(opened), !contains("tiled"));
    }
    write_file(folder / "kernels/gemm/tiled.cl", good);
    const DevicePtr opened = held.open();
    opened->variants()->mark(kTiled, "of before");
    const VariantResult mended = check_variant(opened, *opened->variants(), kTiled);
    CHECK(mended.was_taken);
    CHECK(mended.variant.quirk.empty());
    CHECK_THAT(kernel_of_product(opened), contains("tiled"));
  }
}

// What is wrong without the variant as well is not its fault.
TEST_CASE("the check of a variant blames it for nothing else", "[opencl][variants]") {
  const TemporaryFolder folder;
  const auto sources = folder_of_kernels();
  std::filesystem::copy(sources, folder / "kernels", std::filesystem::copy_options::recursive);
  write_file(folder / "kernels/ops/batch_norm.cl", "this does not compile\n");
  write_file(folder / "kernels/ops/batch_norm_contiguous.cl", "this does not compile either\n");
  const DebugOption kernels("kernel_dir", (folder / "kernels").string());
  for (const DevicePtr& device : opencl_devices()) {
    const Marked held(device);
    const DevicePtr opened = held.open();
    const VariantResult found = check_variant(opened, *opened->variants(), "batch_norm groups");
    CHECK(found.variant.quirk.empty());
    CHECK_THAT(found.unexplained, contains("building a kernel"));
  }
}

TEST_CASE("a kind of kernels is taken by kernels, not by the choice of it", "[opencl][variants]") {
  for (const DevicePtr& device : opencl_devices()) {
    const DevicePtr opened = Device::open(device->info().id);
    Variants& variants = *opened->variants();
    for (const Variant& kind : variants.list()) {
      if (!kind.name.starts_with("kernels for ")) continue;
      INFO(kind.name);
      CHECK(variants.uses(kind.name) == 0);
      variants.prefer(kind.name);
      CHECK(variants.uses(kind.name) == 0);
      static_cast<void>(kernel_of_product(opened));
      CHECK(variants.uses(kind.name) == 1);
      variants.mark(kind.name, "a test says so");
      static_cast<void>(kernel_of_product(opened));  // of the other kind
      CHECK(variants.uses(kind.name) == 1);
    }
  }
}

TEST_CASE("the check of the kind of kernels that a device has anyway finds it taken", "[opencl][variants]") {
  for (const DevicePtr& device : opencl_devices()) {
    const DevicePtr opened = Device::open(device->info().id);  // with the kind that is planned for it
    for (const Variant& variant : opened->variants()->list()) {
      if (!variant.name.starts_with("kernels for ")) continue;
      const VariantResult found = check_variant(opened, *opened->variants(), variant.name);
      INFO(variant.name);
      CHECK(found.was_taken);
      CHECK(found.variant.quirk.empty());
      CHECK(found.unexplained.empty());
    }
  }
}

}  // namespace concord::test
