// Bugs planted into a copy of the kernels: `concord compare` of PoCL with the CPU names the operator that has each, and
// none with the copy as it is.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/process.hpp"
#include "setting.hpp"

namespace concord::test {
namespace {

struct Edit {
  std::string from, to;
};

struct Planted {
  const char* what;
  const char* file;  // of cl_kernels
  std::vector<Edit> edits;
  Arguments network;    // that is compared
  const char* options;  // of CONCORD_DEBUG: which kernels PoCL gets
  const char* node;
  const char* op;
};

/// On PoCL the items of a group run one after the other between barriers, so that a missing one shows each time.
const std::vector<Planted>& planted() {
  static const std::vector<Planted> all{
      {"an off-by-one in a padding border",
       "gemm/panel_pack.h",
       {{"as_int16(as_uint16(lanes + column) < (uint16)((uint)columns))",
         "as_int16(as_uint16(lanes + column) < (uint16)((uint)columns + 1))"}},
       {"resnet20:depth=1,width=4"},
       "kernels=cpu",
       "0/0/conv2d",
       "conv2d"},
      {"a missing barrier",
       "shared/lanes.h",
       {{"step_ * LANE_DISTANCE]); \\\n"
         "      barrier(CLK_LOCAL_MEM_FENCE);                                                                      "
         "\\\n",
         "step_ * LANE_DISTANCE]); \\\n"}},
       {"mlp"},
       "kernels=gpu",
       "cross_entropy",
       "cross_entropy"},
      {"a wrong constant in a derivative",
       "ops/recurrent.h",
       {{"d.g = inner * i * ((1.0f - g) * (1.0f + g));", "d.g = inner * i * ((0.9f - g) * (1.0f + g));"}},
       {"char_lstm", "--input", "4"},
       "kernels=cpu",
       "grad/rnn/recurrent_1/recurrent_backward",
       "recurrent_backward"},
      {"an uninitialised edge of a tile",
       "gemm/tiled_loads.h",
       {{"a_next[i] = k < k_end ? READ_A(a_rows[i] + A_STEP(k)) : (A_NUMBERS)(0.0f);",
         "if (k < k_end) a_next[i] = READ_A(a_rows[i] + A_STEP(k));"},
        {"b_next[i] = k < k_end ? READ_RIGHT(at_k, b_lines[i], true) : (B_NUMBERS)(0.0f);",
         "if (k < k_end) b_next[i] = READ_RIGHT(at_k, b_lines[i], true);"},
        {"b_next[i] = k < k_end ? READ_RIGHT(at_k, b_column, false) : (B_NUMBERS)(0.0f);",
         "if (k < k_end) b_next[i] = READ_RIGHT(at_k, b_column, false);"}},
       {"mlp"},
       "kernels=gpu,gemm=tiled",
       "1/matmul",
       "matmul"},
      {"an update of many weights that leaves the last ones as they were",
       "formula/pointwise_group_contiguous.cl",
       {{"min(first + CHUNK, n)", "min(first + CHUNK, n > 20 ? n / 2 : n)"}},
       {"mlp"},
       "kernels=cpu",
       "update/1.weight/sgd … update/3.bias/sgd",
       "sgd of 4"},
  };
  return all;
}

/// The ids of the CPU and of PoCL, or nothing and a word that the test is skipped.
std::string cpu_and_pocl() {
  const auto id_of = [](auto&& is_it) -> std::string {
    for (const DevicePtr& device : devices()) {
      if (is_it(device->info())) return device->info().id;
    }
    return {};
  };
  const std::string cpu = id_of([](const DeviceInfo& info) { return info.id == "cpu"; });
  const std::string pocl = id_of([](const DeviceInfo& info) { return info.platform.starts_with("PoCL"); });
  if (!cpu.empty() && !pocl.empty()) return cpu + "," + pocl;
  WARN("skipped: it takes the CPU and PoCL");
  return {};
}

class KernelCopy {
 public:
  KernelCopy() {
    std::filesystem::copy(folder_of_kernels(), folder_ / "kernels", std::filesystem::copy_options::recursive);
  }
  [[nodiscard]] std::string path() const { return (folder_ / "kernels").string(); }
  void edit(const std::string& file, const std::vector<Edit>& edits) {
    const auto path = folder_ / ("kernels/" + file);
    std::string text = content_of(path);
    for (const Edit& edit : edits) {
      INFO(edit.from);
      const std::size_t at = text.find(edit.from);
      REQUIRE(at != std::string::npos);
      text.replace(at, edit.from.size(), edit.to);
    }
    write_file(path, text);
  }

 private:
  TemporaryFolder folder_;
};

nlohmann::json compared(const Planted& bug, const std::string& list, const KernelCopy& kernels, int expected_code) {
  Arguments arguments{"compare"};
  arguments.insert(arguments.end(), bug.network.begin(), bug.network.end());
  arguments.insert(arguments.end(),
                   {"--devices", list, "--batch", "2", "--steps", "1", "--seconds", "0.001", "--json"});
  const Ended ended = run_command(
      arguments, {{"CONCORD_DEBUG", with_debug(fmt::format("{},kernel_dir={}", bug.options, kernels.path()))}});
  INFO(ended.err);
  CHECK(ended.code == expected_code);
  REQUIRE_FALSE(ended.out.empty());
  return nlohmann::json::parse(ended.out);
}

}  // namespace

TEST_CASE("bugs planted into kernels are found and named", "[compare]") {
  if (!command_is_there()) return;
  const std::string list = cpu_and_pocl();
  if (list.empty()) return;
  for (const Planted& bug : planted()) {
    INFO(bug.what);
    KernelCopy kernels;
    CHECK(compared(bug, list, kernels, 0).at("agrees") == true);
    kernels.edit(bug.file, bug.edits);
    const auto report = compared(bug, list, kernels, 1);
    const auto& deviation = report.at("devices")[1].at("first_deviation");
    REQUIRE_FALSE(deviation.is_null());
    CHECK(deviation.at("node") == bug.node);
    CHECK(deviation.at("operator") == bug.op);
    CHECK(report.at("devices")[0].at("first_deviation").is_null());
  }
}

/// The losses of six steps of batch 1 go through these numbers once, in the second step.
TEST_CASE("a kernel that is wrong for rare numbers between the ends of a run is found and named", "[compare]") {
  if (!command_is_there()) return;
  const std::string list = cpu_and_pocl();
  if (list.empty()) return;
  for (const char* const wrong : {"NAN", "100.0f"}) {
    INFO(wrong);
    KernelCopy kernels;
    kernels.edit("ops/cross_entropy.cl",
                 {{"loss[loss_offset + row] = value;",
                   std::string("loss[loss_offset + row] = value > 4e-4f && value < 5e-4f ? ") + wrong + " : value;"}});
    const Ended ended = run_command({"compare", "mlp", "--devices", list, "--batch", "1", "--steps", "6", "--lr", "0.1",
                                     "--seconds", "0.001", "--json"},
                                    {{"CONCORD_DEBUG", with_debug("kernel_dir=" + kernels.path())}});
    INFO(ended.err);
    CHECK(ended.code == 1);
    const auto device = nlohmann::json::parse(ended.out).at("devices")[1];
    REQUIRE_FALSE(device.at("first_deviation").is_null());
    CHECK(device.at("first_deviation").at("node") == "cross_entropy");
    CHECK(device.at("first_deviation").at("after_steps") == 1);
    CHECK(device.at("rerun_check").at("step") == 2);
  }
}

}  // namespace concord::test
