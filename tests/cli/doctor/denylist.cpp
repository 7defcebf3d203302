// The doctor's denylist as a user meets it: found, obeyed by other commands, forgotten.
#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "concord/device/kernel_alternatives.hpp"
#include "opencl/opencl_test.hpp"
#include "setting.hpp"

namespace concord::test {
namespace {

/// The id of a PoCL device; empty, and the test reported as skipped, where there is none.
std::string pocl() {
  for (const DevicePtr& device : devices()) {
    if (device->info().platform.starts_with("PoCL")) return device->info().id;
  }
  WARN("skipped: it takes PoCL");
  return {};
}

/// cl_kernels with an error in the products for CPUs.
void plant(const std::filesystem::path& folder) {
  std::filesystem::copy(folder_of_kernels(), folder, std::filesystem::copy_options::recursive);
  std::string text = content_of(folder / "gemm/panel.cl");
  const std::string from = "const float left = LEFT(i, r);";
  REQUIRE(text.find(from) != std::string::npos);
  text.replace(text.find(from), from.size(), "const float left = 1.01f * LEFT(i, r);");
  write_file(folder / "gemm/panel.cl", text);
}

nlohmann::json alternative_in(const nlohmann::json& report, const std::string& name) {
  for (const auto& alternative : report.at("alternatives")) {
    if (alternative.at("name") == name) return alternative;
  }
  return {};
}

}  // namespace

TEST_CASE("commands tell which kernels they do without, until the doctor forgets it", "[cli]") {
  const std::string id = pocl();
  if (!command_is_there() || id.empty()) return;
  const TemporaryFolder folder;
  const Environment environment{{"CONCORD_CACHE_DIR", folder.path().string()}};
  std::filesystem::path file;
  {
    const Setting cache("CONCORD_CACHE_DIR", folder.path().string());
    const DevicePtr device = Device::open(id);
    KernelAlternatives& alternatives = *device->alternatives();
    alternatives.disable("batch_norm runs", "a test says so");
    alternatives.store();
    file = alternatives.file();
  }

  const Arguments bench{"bench", "mlp", "--device", id, "--batch", "2", "--seconds", "0.001"};
  CHECK_THAT(run_command(bench, environment).err, contains("\"batch_norm runs\" is disabled: a test says so"));
  const Ended forgotten = run_command({"doctor", "--forget", "--device", id, "--json"}, environment);
  CHECK(forgotten.code == 0);
  CHECK(nlohmann::json::parse(forgotten.out).at("forgotten") == 1);
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK_THAT(run_command(bench, environment).err, !contains("is disabled"));
}

TEST_CASE("the doctor finds a wrong kernel, and networks are then right without it", "[.slow]") {
  const std::string id = pocl();
  if (!command_is_there() || id.empty()) return;
  const TemporaryFolder folder;
  plant(folder / "kernels");
  const Environment environment{
      {"CONCORD_CACHE_DIR", folder.path().string()},
      {"CONCORD_DEBUG", with_debug("kernels=cpu,kernel_dir=" + (folder / "kernels").string())}};
  const Arguments compare{"compare", "mlp", "--devices", id,      "--reference", "float64",
                          "--batch", "2",   "--seconds", "0.001", "--steps",     "1"};
  CHECK(run_command(compare, environment).code == 1);
  const Ended doctor = run_command({"doctor", "--device", id, "--json"}, environment);
  INFO(doctor.err);
  CHECK(doctor.code == 0);
  const auto report = nlohmann::json::parse(doctor.out);
  CHECK(report.at("can_train") == true);
  CHECK_THAT(alternative_in(report, "product panel").at("reason").get<std::string>(), contains("matmul by the kernel"));
  CHECK(alternative_in(report, "convolution phases").at("reason") == "");
  const Ended after = run_command(compare, environment);
  CHECK(after.code == 0);
  CHECK_THAT(after.err, contains("\"product panel\" is disabled"));
}

}  // namespace concord::test
