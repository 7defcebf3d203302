// The kernel alternatives of a device: preferred and disabled, kept in the denylist, and found wrong by the doctor's
// check.
#include <nlohmann/json.hpp>

#include "concord/compare/cases/alternative_check.hpp"
#include "concord/device/kernel_alternatives.hpp"
#include "files.hpp"
#include "opencl/opencl_test.hpp"
#include "ops/op_test.hpp"

namespace concord::test {
namespace {

constexpr const char* kTiled = "product tiled";

/// A device with kernels for GPUs whose denylist is in a folder of its own.
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

/// Of a product so large that "tiled" is planned for it.
std::string kernel_of_product(const DevicePtr& device) {
  Graph graph;
  const Value y = matmul(graph.input("a", {DType::f32, {400, 50}}), graph.input("b", {DType::f32, {50, 600}}));
  Program program = compile(graph, std::vector{y}, std::make_shared<Variables>(device, 1));
  return program.run_traced().front().kernel;
}

}  // namespace

TEST_CASE("an alternative is taken where it is preferred, and not where it is disabled", "[opencl][alternatives]") {
  for (const DevicePtr& device : opencl_devices()) {
    const Marked held(device);
    const DevicePtr opened = held.open();
    KernelAlternatives& alternatives = *opened->alternatives();
    alternatives.prefer(kTiled);
    CHECK_THAT(kernel_of_product(opened), contains("tiled"));
    CHECK(alternatives.uses(kTiled) == 1);
    alternatives.disable(kTiled, "a test says so");
    CHECK_THAT(kernel_of_product(opened), !contains("tiled"));
    const auto listed = alternatives.list();
    const auto found = std::ranges::find(listed, kTiled, &KernelAlternative::name);
    REQUIRE(found != listed.end());
    CHECK(found->reason == "a test says so");
    CHECK(found->family == "product");
    alternatives.disable(kTiled, "");
    CHECK_THAT(kernel_of_product(opened), contains("tiled"));
    CHECK_THROWS_AS(alternatives.prefer("product magic"), ArgumentError);
    CHECK_THROWS_AS(alternatives.disable("magic", "no"), ArgumentError);
  }
}

TEST_CASE("disabled alternatives are kept for later devices, logged, and enabled again", "[opencl][alternatives]") {
  for (const DevicePtr& device : opencl_devices()) {
    const Marked held(device);
    const DevicePtr first = held.open();
    CHECK_FALSE(std::filesystem::exists(first->alternatives()->file()));
    first->alternatives()->disable(kTiled, "a test says so");
    first->alternatives()->store();
    const auto json = nlohmann::json::parse(content_of(first->alternatives()->file()));
    CHECK(json.at("driver") == device->info().driver);
    CHECK(json.at("quirks").at(kTiled) == "a test says so");

    DevicePtr second;
    const std::string said = warnings_of([&] { second = held.open(); });
    CHECK_THAT(said, contains("\"product tiled\" is disabled: a test says so") && contains("doctor --forget") &&
                         contains(first->alternatives()->file().string()));
    CHECK_THAT(kernel_of_product(second), !contains("tiled"));
    CHECK(second->alternatives()->forget() == 1);
    CHECK_FALSE(std::filesystem::exists(second->alternatives()->file()));
    CHECK(second->alternatives()->forget() == 0);
    CHECK(warnings_of([&] { second = held.open(); }).empty());
    CHECK_THAT(kernel_of_product(second), contains("tiled"));
  }
}

TEST_CASE("a denylist that is damaged, or another driver's, is told and not obeyed", "[opencl][alternatives]") {
  for (const DevicePtr& device : opencl_devices()) {
    const Marked held(device);
    const DevicePtr opened = held.open();
    const std::filesystem::path file = opened->alternatives()->file();
    opened->alternatives()->disable(kTiled, "a test says so");
    opened->alternatives()->store();
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

TEST_CASE("the check of an alternative disables a kernel with a planted bug, and the library does without it",
          "[opencl][alternatives]") {
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
      KernelAlternatives& alternatives = *opened->alternatives();
      const AlternativeResult found = check_alternative(opened, alternatives, kTiled);
      CHECK(found.was_taken);
      CHECK_THAT(found.alternative.reason, contains(broken == bad            ? "matmul by the kernel"
                                                    : broken == bad_epilogue ? "matmul+add by the kernel"
                                                                             : "building a kernel"));
      CHECK(found.unexplained.empty());
      CHECK_THAT(kernel_of_product(opened), !contains("tiled"));
    }
    write_file(folder / "kernels/gemm/tiled.cl", good);
    const DevicePtr opened = held.open();
    opened->alternatives()->disable(kTiled, "of before");
    const AlternativeResult mended = check_alternative(opened, *opened->alternatives(), kTiled);
    CHECK(mended.was_taken);
    CHECK(mended.alternative.reason.empty());
    CHECK_THAT(kernel_of_product(opened), contains("tiled"));
  }
}

// What is wrong without the alternative as well is not its fault.
TEST_CASE("the check of an alternative blames it for nothing else", "[opencl][alternatives]") {
  const TemporaryFolder folder;
  const auto sources = folder_of_kernels();
  std::filesystem::copy(sources, folder / "kernels", std::filesystem::copy_options::recursive);
  write_file(folder / "kernels/ops/batch_norm.cl", "this does not compile\n");
  write_file(folder / "kernels/ops/batch_norm_whole.cl", "this does not compile either\n");
  write_file(folder / "kernels/ops/batch_norm_contiguous.cl", "nor does this\n");
  const DebugOption kernels("kernel_dir", (folder / "kernels").string());
  for (const DevicePtr& device : opencl_devices()) {
    const Marked held(device);
    const DevicePtr opened = held.open();
    const AlternativeResult found = check_alternative(opened, *opened->alternatives(), "batch_norm groups");
    CHECK(found.alternative.reason.empty());
    CHECK_THAT(found.unexplained, contains("building a kernel"));
  }
}

TEST_CASE("a kind of kernels is taken by kernels, not by the choice of it", "[opencl][alternatives]") {
  for (const DevicePtr& device : opencl_devices()) {
    const DevicePtr opened = Device::open(device->info().id);
    KernelAlternatives& alternatives = *opened->alternatives();
    for (const KernelAlternative& kind : alternatives.list()) {
      if (!kind.name.starts_with("kernels for ")) continue;
      INFO(kind.name);
      CHECK(alternatives.uses(kind.name) == 0);
      alternatives.prefer(kind.name);
      CHECK(alternatives.uses(kind.name) == 0);
      static_cast<void>(kernel_of_product(opened));
      CHECK(alternatives.uses(kind.name) == 1);
      alternatives.disable(kind.name, "a test says so");
      static_cast<void>(kernel_of_product(opened));  // of the other kind
      CHECK(alternatives.uses(kind.name) == 1);
    }
  }
}

TEST_CASE("the check of the kind of kernels that a device has anyway finds it taken", "[opencl][alternatives]") {
  for (const DevicePtr& device : opencl_devices()) {
    const DevicePtr opened = Device::open(device->info().id);  // with the kind that is planned for it
    for (const KernelAlternative& alternative : opened->alternatives()->list()) {
      if (!alternative.name.starts_with("kernels for ")) continue;
      const AlternativeResult found = check_alternative(opened, *opened->alternatives(), alternative.name);
      INFO(alternative.name);
      CHECK(found.was_taken);
      CHECK(found.alternative.reason.empty());
      CHECK(found.unexplained.empty());
    }
  }
}

}  // namespace concord::test
